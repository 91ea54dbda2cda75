import { defineCommand } from "../../command.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Upgrade the schema to a newer revision",
  args: {
    revision: {
      type: "positional",
      required: false,
      description: "Target: head (the default), +N for N revisions, or a revision",
    },
    allowDataLoss: { type: "boolean", description: "Allow data to be dropped" },
    sql: { type: "boolean", description: "Print the SQL instead of running it" },
    lockTimeout,
  },
  examples: ["svc database upgrade", "svc database upgrade +1", "svc database upgrade --sql > upgrade.sql"],
  notes: [
    "Upgrades the database of SVC_DATABASE_URL (or SVC_DATABASE_URL_FILE). Each revision runs in its own transaction: if one fails, it is rolled back, and those before it stay. Only one upgrade runs at a time; others wait.",
    "An upgrade that would drop data lists it and stops, unless you use --allow-data-loss. An empty table, or a column that contains only its default, is not data.",
  ],
  async run({ revision: target, allowDataLoss, sql, lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    if (sql) {
      const { upgradeScript } = await import("../../../drizzle/revision/script.ts");
      io.stdout.write(await upgradeScript({ url, target, allowDataLoss }));
      return;
    }
    const [{ upgrade }, { follow, triggerLines }] = await Promise.all([
      import("../../../drizzle/revision/upgrade.ts"),
      import("../../database/revisions.ts"),
    ]);
    const { applied, head, triggers } = await follow(io, "Applying", "Applied", (progress) =>
      upgrade({ url, target, allowDataLoss, patience, ...progress }),
    );
    // A new schema always has new triggers.
    for (const line of triggerLines({ ...triggers, created: [] })) io.stderr.write(`${line}\n`);
    if (applied.length === 0) io.stdout.write(`Nothing to do: the schema is at ${head}\n`);
  },
});
