import { sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { until } from "../process/until.ts";

/** Waits until at least `atLeast` sessions wait for a lock in this database. @throws Error if that never happens */
export async function somebodyWaits(db: Database, atLeast = 1): Promise<void> {
  await until(`${atLeast} to wait for a lock`, async () => (await waiting(db)) >= atLeast);
}

/**
 * Makes the calls in turn while `hold` blocks them: each starts when the previous ones wait for a lock or have ended. Then
 * `hold` commits. Returns the result of each call.
 */
export async function inTheWay<T>(
  db: Database,
  hold: (tx: Transaction) => PromiseLike<unknown>,
  ...calls: (() => Promise<T>)[]
): Promise<PromiseSettledResult<T>[]> {
  const begun: Promise<PromiseSettledResult<T>>[] = [];
  let underWay = 0;
  const begin = async (call: () => Promise<T>) => {
    underWay += 1;
    const [ended] = await Promise.allSettled([call()]);
    underWay -= 1;
    return ended;
  };
  await db.transaction(async (tx) => {
    await hold(tx);
    for (const [before, call] of calls.entries()) {
      begun.push(begin(call));
      const what = `call ${before + 1} of ${calls.length} to wait for a lock, or to end`;
      await until(what, async () => (await waiting(db)) >= underWay);
    }
  });
  return Promise.all(begun);
}

/** Uses a separate connection, because statistics views do not change within a transaction. */
async function waiting(db: Database): Promise<number> {
  const locked = sql`select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  return (await db.execute(locked)).length;
}
