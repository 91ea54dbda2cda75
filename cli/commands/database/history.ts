import type { HistoryEntry } from "../../../core/revision/inspect.ts";
import { defineCommand } from "../../command.ts";
import { databaseUrlIfSet } from "../../database_url.ts";

export default defineCommand({
  args: {
    verbose: { type: "boolean", short: "v", description: "Tell all that is known of each" },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: ["svc database history", "svc database history --verbose"],
  notes: [
    "Newest first. With SVC_DATABASE_URL it also tells when each was applied, and shows what only the database knows.",
  ],
  async run({ verbose, json }, io) {
    const [{ history }, { table }] = await Promise.all([
      import("../../../core/revision/inspect.ts"),
      import("../../table.ts"),
    ]);
    const entries = await history(await databaseUrlIfSet(io));
    if (json) {
      io.stdout.write(`${JSON.stringify(entries)}\n`);
      return;
    }
    if (verbose) {
      io.stdout.write(entries.map(describe).join("\n"));
      return;
    }
    const asked = entries.some(({ appliedAt }) => appliedAt !== undefined);
    const header = ["Revision", "Parents", ...(asked ? ["Applied"] : []), "Message"];
    const rows = entries.map((entry) => [
      entry.id,
      entry.parents.join(", ") || "-",
      ...(asked ? [applied(entry)] : []),
      entry.message,
    ]);
    io.stdout.write(table(header, rows));
  },
});

function applied({ appliedAt, state }: HistoryEntry): string {
  if (state !== undefined && state !== "applied") return state;
  return appliedAt ? `${appliedAt.toISOString().slice(0, 19)}Z` : "-";
}

function describe(entry: HistoryEntry): string {
  const lines: [string, string | undefined][] = [
    ["Revision", entry.id],
    ["Message", entry.message],
    ["Parents", entry.parents.join(", ") || "none"],
    ["Written", entry.createdAt || "unknown"],
    ["Applied", entry.appliedAt === undefined ? undefined : applied(entry)],
    ["Compatible", entry.compatible ? "yes: the release before it works on it" : "no"],
    ["Transaction", entry.transactional ? undefined : "none: one statement that allows none"],
    ["Way back", entry.irreversible ? "none" : undefined],
    ["SQL", entry.edited ? "edited since it was generated" : undefined],
    ["Known", entry.unknown ? "to the database only" : undefined],
  ];
  return lines
    .flatMap(([name, text]) => (text === undefined ? [] : [`${name.padEnd(13)}${text}\n`]))
    .join("");
}
