// A patch around postgres.js, which has no setting to prepare statements only within transactions.

import type { Sql } from "./sql.ts";
import { changeTransactions } from "./transactions.ts";

/** The number of different statements that a pool prepares; each connection keeps its own plans. */
const mostPrepared = 300;
/**
 * The limit for statements that differ only in their number of rows or ids: callers choose that number, and could use
 * up the whole limit.
 */
const mostOfShape = 8;
/** The number of different statements remembered as seen once. */
const mostSeen = 1000;
/** In characters. Longer statements carry rows, and differ each time. */
const longestPrepared = 10_000;

type Ask = (text: string, values?: unknown[], options?: { prepare?: boolean }) => unknown;

/**
 * Prepares statements in transactions from the second time on. PostgreSQL parses and plans an unprepared one again each
 * time, and meanwhile others wait for the transaction's locks.
 *
 * Statements outside transactions are not prepared: filtered lists come in countless variants, and a cached plan does
 * not know whether a filter leaves few rows or many. Frequent reads are prepared where they are written.
 */
export function prepareInTransactions(client: Sql): void {
  const isRepeated = repetitions();
  changeTransactions(client, (scope) => {
    const ask = scope.unsafe as Ask;
    const preparing: Ask = (text, values, options) =>
      ask(text, values, { ...options, prepare: options?.prepare || isRepeated(text) });
    scope.unsafe = preparing as Sql["unsafe"];
  });
}

/** Returns whether a text came before, for a limited number of texts. */
function repetitions(): (text: string) => boolean {
  const repeated = new Set<string>();
  const seen = new Set<string>();
  const shapes = new Map<string, number>();
  return (text) => {
    if (repeated.has(text)) return true;
    if (text.length > longestPrepared || repeated.size === mostPrepared) return false;
    if (seen.has(text)) {
      const shape = text.replaceAll(/(?:\bdefault\b|\$\d+|[\s(),])+/g, " ");
      const known = shapes.get(shape) ?? 0;
      if (known === mostOfShape) return false;
      shapes.set(shape, known + 1);
      seen.delete(text);
      repeated.add(text);
      return true;
    }
    seen.add(text);
    const [first] = seen;
    if (seen.size > mostSeen) seen.delete(first!);
    return false;
  };
}
