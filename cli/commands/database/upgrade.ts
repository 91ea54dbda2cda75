import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database_url.ts";
import { UsageError } from "../../errors.ts";
import { lockTimeout } from "../../lock_timeout.ts";
import { minusSign } from "../../text.ts";

export default defineCommand({
  args: {
    revision: {
      type: "positional",
      required: false,
      description: "Where to: head (if left out), +N revisions further, a revision, or N after one (REV+N)",
    },
    allowDataLoss: { type: "boolean", description: "Drop rows and values that tables hold" },
    sql: { type: "boolean", description: "Print the SQL that would be run, and change nothing" },
    lockTimeout,
  },
  examples: [
    "svc database upgrade",
    "svc database upgrade +1",
    "svc database upgrade --sql > upgrade.sql",
    "svc database upgrade base:head --sql",
  ],
  notes: [
    "SVC_DATABASE_URL (or SVC_DATABASE_URL_FILE) names the database. Each revision has a transaction of its own: one that fails leaves nothing behind, and those before it stay. Several upgrades at once are safe: one works, the others wait.",
    "--sql with a range FROM:TO asks no database: it prints the SQL for one that is at FROM.",
    "An upgrade that would drop rows or values lists them and stops; --allow-data-loss drops them. An empty table, or a column that holds nothing but its default, is no loss.",
  ],
  async run({ revision, allowDataLoss, sql, lockTimeout: patience }, io) {
    const target = revision?.replace(minusSign, "-");
    if (sql) {
      const { isRange, upgradeScript } = await import("../../../drizzle/revision/script.ts");
      const url = isRange(target) ? undefined : await databaseUrl(io);
      io.stdout.write(await upgradeScript({ url, target, allowDataLoss }));
      return;
    }
    if (target?.includes(":")) throw new UsageError(`${target} is a range, which goes with --sql`);
    const url = await databaseUrl(io);
    const [{ upgrade }, { follow, triggerLines }] = await Promise.all([
      import("../../../drizzle/revision/upgrade.ts"),
      import("../../revisions.ts"),
    ]);
    const { applied, head, triggers } = await follow(io, "Applying", "Applied", (progress) =>
      upgrade({ url, target, allowDataLoss, patience, ...progress }),
    );
    // That a new schema has new triggers is no news.
    for (const line of triggerLines({ ...triggers, created: [] })) io.stderr.write(`${line}\n`);
    if (applied.length === 0) io.stdout.write(`Nothing to do: the schema is at ${head}\n`);
  },
});
