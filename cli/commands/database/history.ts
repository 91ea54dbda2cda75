import { defineCommand } from "../../command.ts";
import { databaseUrlIfSet } from "../../database/url.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the revisions, newest first",
  args: {
    verbose: { type: "boolean", short: "v", description: "Show details of each revision" },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: ["svc database history", "svc database history --verbose"],
  notes: [
    "With SVC_DATABASE_URL, it also shows when each revision was applied, and the revisions that only the database has.",
  ],
  async run({ verbose, json }, io) {
    const [{ history }, { printTable }, { appliedText, describeRevision }] = await Promise.all([
      import("../../../drizzle/revision/inspect.ts"),
      import("../../table.ts"),
      import("../../database/revisions.ts"),
    ]);
    const entries = await history(await databaseUrlIfSet(io));
    if (json) return printJson(io, entries);
    if (verbose) {
      io.stdout.write(entries.map(describeRevision).join("\n"));
      return;
    }
    const asked = entries.some(({ appliedAt }) => appliedAt !== undefined);
    const columns = [
      "Revision",
      { header: "Parents", leaveOut: 2 },
      ...(asked ? [{ header: "Applied", leaveOut: 1 }] : []),
      { header: "Message", flexible: true },
    ];
    const rows = entries.map((entry) => [
      entry.id,
      entry.parents.join(", ") || "-",
      ...(asked ? [appliedText(entry)] : []),
      entry.message,
    ]);
    printTable(io, columns, rows);
  },
});
