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
      description:
        "Where to: -1 (if left out), -N revisions back, base, the revision that stays, or N before one (REV-N)",
    },
    allowDataLoss: { type: "boolean", description: "Drop rows and values that tables hold" },
    sql: { type: "boolean", description: "Print the SQL that would be run, and change nothing" },
    lockTimeout,
  },
  examples: [
    "svc database downgrade",
    "svc database downgrade -2",
    "svc database downgrade base --allow-data-loss",
  ],
  notes: [
    "Goes back exactly one revision, or as far as is said, by the SQL that the database keeps of each revision: an older release can take back what only a newer one knows. Stop the newer servers and workers first, and start the older ones behind it.",
    "--sql with a range FROM:TO asks no database: it prints the SQL for one that is at FROM, by the files of this release.",
    "A downgrade that would drop rows or values lists them and stops; --allow-data-loss drops them. An empty table, or a column that holds nothing but its default, is no loss. `svc database dump` makes a backup.",
  ],
  async run({ revision, allowDataLoss, sql, lockTimeout: patience }, io) {
    const target = revision?.replace(minusSign, "-");
    if (sql) {
      const { isRange, downgradeScript } = await import("../../../drizzle/revision/script.ts");
      const url = isRange(target) ? undefined : await databaseUrl(io);
      io.stdout.write(await downgradeScript({ url, target, allowDataLoss }));
      return;
    }
    if (target?.includes(":")) throw new UsageError(`${target} is a range, which goes with --sql`);
    const url = await databaseUrl(io);
    const [{ downgrade }, { follow }] = await Promise.all([
      import("../../../drizzle/revision/downgrade.ts"),
      import("../../revisions.ts"),
    ]);
    const { reverted, head } = await follow(io, "Taking back", "Took back", (progress) =>
      downgrade({ url, target, allowDataLoss, patience, ...progress }),
    );
    if (reverted.length === 0) io.stdout.write(`Nothing to do: the schema is at ${head}\n`);
  },
});
