import { defineCommand } from "../../command.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Downgrade the schema to an older revision",
  args: {
    revision: {
      type: "positional",
      required: false,
      description: "Target: -1 (the default), -N for N revisions, base, or a revision",
    },
    allowDataLoss: { type: "boolean", description: "Allow data to be dropped" },
    sql: { type: "boolean", description: "Print the SQL instead of running it" },
    lockTimeout,
  },
  examples: [
    "svc database downgrade",
    "svc database downgrade -2",
    "svc database downgrade base --allow-data-loss",
  ],
  notes: [
    "Reverts one revision, or down to the target, with the SQL that the database keeps of each revision, so that an older release can revert revisions of a newer one. Stop the newer servers and workers first, and start the older ones afterwards.",
    "A downgrade that would drop data lists it and stops, unless you use --allow-data-loss. An empty table, or a column that contains only its default, is not data. `svc database dump` makes a backup.",
  ],
  async run({ revision: target, allowDataLoss, sql, lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    if (sql) {
      const { downgradeScript } = await import("../../../drizzle/revision/script.ts");
      io.stdout.write(await downgradeScript({ url, target, allowDataLoss }));
      return;
    }
    const [{ downgrade }, { follow }] = await Promise.all([
      import("../../../drizzle/revision/downgrade.ts"),
      import("../../database/revisions.ts"),
    ]);
    const { reverted, head } = await follow(io, "Reverting", "Reverted", (progress) =>
      downgrade({ url, target, allowDataLoss, patience, ...progress }),
    );
    if (reverted.length === 0) io.stdout.write(`Nothing to do: the schema is at ${head}\n`);
  },
});
