import { defineCommand } from "../../command.ts";
import { databaseUrlIfSet } from "../../database/url.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the revisions, newest first",
  args: {
    range: {
      type: "string",
      short: "r",
      metavar: "FROM:TO",
      description:
        "Show only this range: ids, base, current, head, REV-N, or -N for current-N; FROM or TO can be omitted",
    },
    verbose: { type: "boolean", short: "v", description: "Show details of each revision" },
    indicateCurrent: {
      type: "boolean",
      short: "i",
      description: "Mark the current revision of the database",
    },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: [
    "svc database history",
    "svc database history --verbose",
    "svc database history --range current:head",
  ],
  notes: [
    "With SVC_DATABASE_URL, it also shows when each revision was applied, and the revisions that only the database has.",
  ],
  async run({ range, verbose, indicateCurrent, json }, io) {
    const [{ currentOf, entriesIn, history }, { printTable }, { appliedText, describeRevision }] =
      await Promise.all([
        import("../../../drizzle/revision/inspect.ts"),
        import("../../table.ts"),
        import("../../database/revisions.ts"),
      ]);
    const all = await history(await databaseUrlIfSet(io));
    const entries = range === undefined ? all : entriesIn(all, range);
    if (json) return printJson(io, entries);
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
    const columns = [
      "Revision",
      { header: "Parents", leaveOut: 2 },
      ...(asked ? [{ header: "Applied", leaveOut: 1 }] : []),
      { header: "Message", flexible: true },
    ];
    const rows = shown.map((entry) => [
      entry.id,
      entry.parents.join(", ") || "-",
      ...(asked ? [appliedText(entry)] : []),
      entry.message,
    ]);
    printTable(io, columns, rows);
  },
});
