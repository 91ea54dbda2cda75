import { sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { errorCode, transience, withoutQuery } from "../../drizzle/database_error.ts";

/** How many rows a statement writes: PostgreSQL takes at most 65,535 values. */
const batch = 2000;

/** Splits `rows`, in order, into parts that one statement can take. */
function* batchesOf<T>(rows: readonly T[]): Generator<T[]> {
  for (let at = 0; at < rows.length; at += batch) yield rows.slice(at, at + batch);
}

/** Rows that could not be written: PostgreSQL refuses them, or another transaction has locked them. */
export interface Unwritten<T> {
  refused: T[];
  locked: T[];
}

/** How long a part waits for a locked row. */
const lockWait = "100ms";
/** With more locked rows than this, the table is probably locked. */
const mostLocked = 100;

/** Limits the waits of a transaction for locks from now on, because what is locked is left out or retried. */
export async function waitBriefly(tx: Transaction): Promise<void> {
  await tx.execute(sql`select set_config('lock_timeout', ${lockWait}, true)`);
}

/**
 * Writes rows, many in a statement. If that fails, each half is written separately, so that a row that cannot be
 * written does not cost the others.
 *
 * @returns the rows that could not be written
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
