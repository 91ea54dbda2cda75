import { and, eq, inArray, isNull, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { accessLease, accessRole } from "../../drizzle/schema/index.ts";
import { Conflict, Forbidden, Unavailable } from "../../platform/errors.ts";
import { audit } from "../audit.ts";
import type { Actor } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { lockIncidents } from "../incident/incident/lock.ts";
import type { AppContext } from "../plugin/context.ts";
import { markEnding } from "./end.ts";
import type { LeaseRow } from "./lease.ts";
import { noSuchRole } from "./role.ts";
import { callForRole, pluginOf, type RoleRow } from "./role_plugin.ts";

// After a backup is restored, the database and the targets disagree. Orphans are credentials at a target without an
// unfinished lease in our database. Missing leases are Active in our database but do not exist at the target. Plugins list
// only what this installation issued.

/** The user and the token of an orphan are unknown. */
const orphanUser = "system";
const noToken = "00000000-0000-0000-0000-000000000000";

export interface Differences {
  /** The names of credentials at the target. */
  orphans: string[];
  /** The names of leases. */
  missing: string[];
}

/**
 * Compares the leases of a role with the credentials at its target. Only for admins.
 *
 * @throws Forbidden
 * @throws NotFound
 * @throws Conflict when the plugin is not enabled, or cannot list
 * @throws Unavailable when the plugin fails
 */
export async function reconcileRole(context: AppContext, actor: Actor, slug: string): Promise<Differences> {
  return (await compare(context, actor, slug)).differences;
}

/**
 * Revokes the given names that are still orphans or missing, and ignores the others. Orphans get new leases that are
 * Revoking, so workers retry them like any other lease.
 *
 * @returns the names that are being revoked
 * @throws the errors of `reconcileRole`
 */
export async function revokeDifferences(
  context: AppContext,
  actor: Actor,
  { slug, names }: { slug: string; names: readonly string[] },
): Promise<{ revoking: string[] }> {
  const { role, differences } = await compare(context, actor, slug);
  const named = new Set(names);
  const chosen = (among: readonly string[]) => among.filter((name) => named.has(name));
  const [orphans, missing] = [chosen(differences.orphans), chosen(differences.missing)];
  await context.db.transaction(async (tx) => {
    const at = await databaseNow(tx);
    await adoptOrphans(tx, role, orphans, at);
    const ofRole = and(eq(accessLease.roleId, role.id), inArray(accessLease.name, missing));
    if (missing.length > 0) {
      // Lock all of them in one order. The batches below would lock them in an arbitrary order.
      const affected = await tx
        .selectDistinct({ id: accessLease.incidentId })
        .from(accessLease)
        .where(ofRole);
      await lockIncidents(
        tx,
        affected.map(({ id }) => id),
      );
      for (let last: number | null = 0; last !== null;)
        ({ last } = await markEnding(tx, actor.user, "missing", ofRole, { after: last }));
    }
    const data = { orphans, missing };
    await audit(tx, { at, actor: actor.user, action: "access_role.reconciled", subject: slug, data });
  });
  return { revoking: [...orphans, ...missing] };
}

async function compare(
  context: AppContext,
  actor: Actor,
  slug: string,
): Promise<{ role: RoleRow; differences: Differences }> {
  if (!actor.admin) throw new Forbidden("Only admins can reconcile access roles");
  const { db } = context;
  const [role] = await db.select().from(accessRole).where(eq(accessRole.slug, slug));
  if (!role) throw noSuchRole();
  const plugin = pluginOf(context, role.pluginSlug);
  if (plugin.methods.list === undefined)
    throw new Conflict(`The plugin ${plugin.slug} cannot list the credentials it issued`);
  // Reads the leases before and after, so that a lease issued or revoked in the meantime does not count as a difference.
  const before = await unfinishedLeases(db);
  const outcome = await callForRole(context, { role, plugin }, "list", {});
  if (!outcome.ok) throw new Unavailable(`${slug}: ${outcome.detail}`);
  const outside = new Set(outcome.value);
  const after = await unfinishedLeases(db);
  const isActive = ({ state, roleId }: Unfinished) => state === "Active" && roleId === role.id;
  const active = [...before.values()].filter(isActive).map(({ name }) => name);
  return {
    role,
    differences: {
      orphans: [...outside].filter((name) => !before.has(name) && !after.has(name)).sort(),
      missing: active.filter((name) => !outside.has(name) && after.get(name)?.state === "Active").sort(),
    },
  };
}

type Unfinished = Pick<LeaseRow, "name" | "state" | "roleId">;

/** The unfinished leases of all roles by name, because several roles may share a target. */
async function unfinishedLeases(db: Database | Transaction): Promise<Map<string, Unfinished>> {
  const rows = await db
    .select({ name: accessLease.name, state: accessLease.state, roleId: accessLease.roleId })
    .from(accessLease)
    .where(isNull(accessLease.finishedAt));
  return new Map(rows.map((row) => [row.name, row]));
}

/** Inserts leases as Revoking. Finished leases with these names become Revoking again. */
async function adoptOrphans(
  tx: Transaction,
  role: RoleRow,
  names: readonly string[],
  at: Date,
): Promise<void> {
  if (names.length === 0) return;
  const rows = names.map((name) => ({
    name,
    roleId: role.id,
    userName: orphanUser,
    tokenId: noToken,
    state: "Revoking" as const,
    createdAt: at,
    issuedAt: at,
    expiresAt: at,
    maxExpiresAt: at,
    dueAt: at,
    endReason: "orphaned",
  }));
  await tx
    .insert(accessLease)
    .values(rows)
    .onConflictDoUpdate({
      target: accessLease.name,
      set: { state: "Revoking", dueAt: at, finishedAt: null, attempts: 0, endReason: "orphaned" },
      setWhere: sql`${accessLease.finishedAt} is not null`,
    });
}
