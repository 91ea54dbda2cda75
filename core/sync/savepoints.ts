import { sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { errorCode, transience, withoutQuery } from "../../drizzle/database_error.ts";

/** Rows of one statement: PostgreSQL takes 65,535 values at most. */
const batch = 2000;

/** `rows`, in the order in which they stand, in parts that one statement can take. */
export function* batchesOf<T>(rows: readonly T[]): Generator<T[]> {
  for (let at = 0; at < rows.length; at += batch) yield rows.slice(at, at + batch);
}

/** Rows that could not be written: PostgreSQL refuses them, or somebody else has them locked. */
export interface Unwritten<T> {
  refused: T[];
  locked: T[];
}

/** A part waits so long for a row that somebody else holds. */
const lockWait = "100ms";
/** Where more are locked than that, somebody holds the table. */
const mostLocked = 100;

/** For a transaction that writes in parts: from now on it waits for no lock for long. */
export async function waitBriefly(tx: Transaction): Promise<void> {
  await tx.execute(sql`select set_config('lock_timeout', ${lockWait}, true)`);
}

/**
 * Writes rows, many in a statement. Where that fails, each half is written by itself, so that the others are not lost with
 * a row that cannot be written.
 *
 * @returns the rows that could not be
 */
export async function writeInParts<T>(
  tx: Transaction,
  rows: readonly T[],
  write: (tx: Transaction, part: T[]) => Promise<unknown>,
): Promise<Unwritten<T>> {
  const unwritten: Unwritten<T> = { refused: [], locked: [] };
  const writePart = async (part: T[]): Promise<void> => {
    try {
      await tx.transaction((savepoint) => write(savepoint, part));
    } catch (error) {
      const isLocked = errorCode(withoutQuery(error)) === lockNotAvailable;
      if (transience(error) && (!isLocked || unwritten.locked.length === mostLocked)) throw error;
      if (part.length === 1) {
        unwritten[isLocked ? "locked" : "refused"].push(...part);
        return;
      }
      const middle = Math.ceil(part.length / 2);
      await writePart(part.slice(0, middle));
      await writePart(part.slice(middle));
    }
  };
  for (const part of batchesOf(rows)) await writePart(part);
  return unwritten;
}

const lockNotAvailable = "55P03";
