import { defineCommand } from "../../command.ts";
import { databaseUrlIfSet } from "../../database_url.ts";
import { minusSign } from "../../text.ts";

export default defineCommand({
  args: {
    range: {
      type: "string",
      short: "r",
      metavar: "FROM:TO",
      description:
        "Only from one revision to another: ids, base, current, head, N before one (REV-N, or -N for current-N); either may be left out",
    },
    verbose: { type: "boolean", short: "v", description: "Tell all that is known of each" },
    indicateCurrent: { type: "boolean", short: "i", description: "Mark where the database is" },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: [
    "svc database history",
    "svc database history --verbose",
    "svc database history --range current:head",
  ],
  notes: [
    "Newest first. With SVC_DATABASE_URL it also tells when each was applied, and shows what only the database knows.",
  ],
  async run({ range, verbose, indicateCurrent, json }, io) {
    const [{ currentOf, entriesIn, history }, { table }, { appliedText, describeRevision }] =
      await Promise.all([
        import("../../../drizzle/revision/inspect.ts"),
        import("../../table.ts"),
        import("../../revisions.ts"),
      ]);
    const all = await history(await databaseUrlIfSet(io));
    const entries = range === undefined ? all : entriesIn(all, range.replace(minusSign, "-"));
    if (json) {
      io.stdout.write(`${JSON.stringify(entries)}\n`);
      return;
    }
    const current = indicateCurrent ? currentOf(all) : [];
    const shown = entries.map((entry) => ({
      ...entry,
      id: current.includes(entry.id) ? `${entry.id} (current)` : entry.id,
    }));
    if (verbose) {
      io.stdout.write(shown.map(describeRevision).join("\n"));
      return;
    }
    const asked = entries.some(({ appliedAt }) => appliedAt !== undefined);
    const header = ["Revision", "Parents", ...(asked ? ["Applied"] : []), "Message"];
    const rows = shown.map((entry) => [
      entry.id,
      entry.parents.join(", ") || "-",
      ...(asked ? [appliedText(entry)] : []),
      entry.message,
    ]);
    io.stdout.write(table(header, rows));
  },
});
