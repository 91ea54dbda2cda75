import { hostname } from "node:os";
import { asc, eq, inArray, sql } from "drizzle-orm";
import { setting } from "../drizzle/schema/index.ts";
import { type Config, variables } from "./config.ts";
import type { Context } from "./context.ts";
import { installationId } from "./installation.ts";

/** All servers and workers need the same values of these, or they interpret the same rows differently. */
const ofAll = [
  "domain",
  "publicUrl",
  "timezone",
  "pluginPackages",
  "pluginDocumentResolver",
  "pluginParticipant",
  "pluginDocument",
  "pluginConversation",
  "pluginParticipantGroup",
  "pluginTerm",
  "pluginApplication",
  "pluginCredential",
  "adminGroup",
] satisfies (keyof Config)[];
/** All servers need the same values of these. Workers do not sign anyone in. */
const ofServers = [
  "sso",
  "oidcIssuer",
  "oidcUserClaim",
  "oidcGroupsClaim",
  // Each would rewrite the rows of client certificates of the others.
  "mtlsIdentity",
  "mtlsUriPrefix",
  "mtlsUsage",
  "mtlsGroups",
] satisfies (keyof Config)[];

/**
 * Compares our settings with those recorded by earlier processes, and logs a warning for each that differs. It does not
 * refuse to start: while a value is being changed, the old processes continue with the old one. With `record`, our
 * values become those that the next process compares with. A command that runs a single task leaves that to servers and
 * workers.
 */
export async function warnOfDisagreement(
  { db, config, log }: Pick<Context, "db" | "config" | "log">,
  { role, record = true }: { role: "server" | "worker"; record?: boolean },
): Promise<void> {
  const keys: (keyof Config)[] = role === "server" ? [...ofAll, ...ofServers] : ofAll;
  const mine = new Map(keys.map((key) => [variables[key].name, textOf(config[key])]));
  // Workers revoke leases with what servers have encrypted.
  mine.set(
    variables.keySecret.name,
    config.keySecret ? `fingerprint ${installationId(config.keySecret)}` : null,
  );
  const recorded = {
    recordedBy: `the ${role} on ${hostname()} (pid ${process.pid})`,
    recordedAt: sql`now()`,
  };
  const different = await db.transaction(async (tx) => {
    // A process that freezes here must not keep others from starting.
    await tx.execute(sql`set local lock_timeout = '2s'`);
    // In a fixed order, or two that start at once could deadlock.
    const rows = [...mine].sort().map(([name, value]) => ({ name, value, ...recorded }));
    if (record) await tx.insert(setting).values(rows).onConflictDoNothing();
    const known = tx
      .select()
      .from(setting)
      .where(inArray(setting.name, [...mine.keys()]))
      .orderBy(asc(setting.name));
    const others = (await (record ? known.for("update") : known)).filter(
      ({ name, value }) => value !== mine.get(name),
    );
    if (record) {
      for (const { name } of others)
        await tx
          .update(setting)
          .set({ value: mine.get(name), ...recorded })
          .where(eq(setting.name, name));
    }
    return others;
  });
  for (const { name, value, recordedBy, recordedAt } of different) {
    log.warn(
      { setting: name },
      `${name} is ${display(mine.get(name))} here and was ${display(value)} for ${recordedBy} at ${recordedAt.toISOString()}: give all servers and workers the same value, and restart those that have another one`,
    );
  }
}

const textOf = (value: Config[keyof Config]) => (value === undefined ? null : String(value));
const display = (value: string | null | undefined) => (value == null ? "not set" : JSON.stringify(value));
