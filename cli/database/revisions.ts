import type { HistoryEntry } from "../../drizzle/revision/inspect.ts";
import type { SyncResult } from "../../drizzle/revision/triggers.ts";
import type { Io } from "../io.ts";
import { canDraw } from "../screen.ts";
import { counted } from "../text.ts";
import { progressLine } from "./backup.ts";

/** Reports of a running schema change. */
export interface Progress {
  begin(revision: string): void;
  log(revision: string): void;
  notice(message: string): void;
}

/**
 * Runs a schema change and prints a line for each completed revision; on a terminal, also the current one. Prints to stderr
 * what it is waiting for.
 */
export async function follow<T>(
  io: Pick<Io, "stdout" | "stderr" | "env">,
  doing: string,
  done: string,
  change: (progress: Progress) => Promise<T>,
): Promise<T> {
  const { notice, clear } = progressLine(io);
  const progress: Progress = {
    begin: (revision) => canDraw(io.stderr, io.env) && io.stderr.write(`\r\x1b[K${doing} ${revision}`),
    log: (revision) => {
      clear();
      io.stdout.write(`${done} ${revision}\n`);
    },
    notice,
  };
  return await change(progress).finally(clear);
}

/** The changes of triggers as text; empty if there were none. */
export function triggerLines({ created, repaired, removed, filled }: SyncResult): string[] {
  const lines = [
    ...created.map((name) => `Created trigger ${name}`),
    ...repaired.map((name) => `Repaired trigger ${name}`),
    ...removed.map((name) => `Removed trigger ${name}`),
  ];
  for (const [table, rows] of Object.entries(filled)) {
    lines.push(`Filled ${counted(rows, "row")} of ${table}`);
  }
  return lines;
}

/** The inserted defaults as text. */
export function createdLines(created: readonly { table: string; name: string }[]): string[] {
  return created.map(({ table, name }) => `Created ${table.replaceAll("_", " ")} ${name}`);
}

/** When a revision was applied, or its state. */
export function appliedText({ appliedAt, state }: HistoryEntry): string {
  if (state !== undefined && state !== "applied") return state;
  return appliedAt ? `${appliedAt.toISOString().slice(0, 19)}Z` : "-";
}

/** All details of a revision. */
export function describeRevision(entry: HistoryEntry): string {
  const lines: [string, string | undefined][] = [
    ["Revision", entry.id],
    ["Message", entry.message],
    ["Parents", entry.parents.join(", ") || "none"],
    ["Created", entry.createdAt || "unknown"],
    ["Applied", entry.appliedAt === undefined ? undefined : appliedText(entry)],
    ["Compatible", entry.compatible ? "yes: the previous release works with it" : "no"],
    ["Transaction", entry.transactional ? undefined : "none"],
    ["Downgrade", entry.irreversible ? "not possible" : undefined],
    ["Files", entry.unknown ? "none: only the database has it" : undefined],
  ];
  return lines
    .flatMap(([name, text]) => (text === undefined ? [] : [`${name.padEnd(13)}${text}\n`]))
    .join("");
}
