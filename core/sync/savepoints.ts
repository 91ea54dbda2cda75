import type { Transaction } from "../../drizzle/client.ts";
import { transience } from "../database_error.ts";

/** Rows of one statement: PostgreSQL takes 65,535 values at most. */
const batch = 2000;

/** `rows`, in the order in which they stand, in parts that one statement can take. */
export function* batchesOf<T>(rows: readonly T[]): Generator<T[]> {
  for (let at = 0; at < rows.length; at += batch) yield rows.slice(at, at + batch);
}

/**
 * Writes rows, many in a statement. Where PostgreSQL refuses that, each half is written by itself, so that the others are
 * not lost with a row that cannot be written.
 *
 * @returns the rows that could not be
 */
export async function writeInParts<T>(
  tx: Transaction,
  rows: readonly T[],
  write: (tx: Transaction, part: T[]) => Promise<unknown>,
): Promise<T[]> {
  const refused: T[] = [];
  const writePart = async (part: T[]): Promise<void> => {
    try {
      await tx.transaction((savepoint) => write(savepoint, part));
    } catch (error) {
      if (transience(error)) throw error;
      if (part.length === 1) return void refused.push(...part);
      const middle = Math.ceil(part.length / 2);
      await writePart(part.slice(0, middle));
      await writePart(part.slice(middle));
    }
  };
  for (const part of batchesOf(rows)) await writePart(part);
  return refused;
}
