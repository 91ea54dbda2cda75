import type { Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";

/** Other work in the transaction of a step, such as repairing triggers that the step would break. */
export type After = (transaction: Pick<Sql, "unsafe">) => Promise<void>;

export interface StepOptions {
  /** Drop rows and values without checking for data. */
  allowDataLoss?: boolean;
  after?: After;
  /** Called when the step has to be retried because a table is in use. */
  onRetry?: (message: string) => void;
  /**
   * More revisions follow, so this commit need not be flushed to disk: theirs will be. PostgreSQL writes commits in
   * order, so a crash loses only the last ones, each as a whole, and the next upgrade applies them again.
   */
  othersFollow?: boolean;
}

/** Where operators find instructions. */
export const guide = 'docs/release.md, "If the upgrade fails"';

/** If the connection is gone, so is the transaction. */
export async function rollback(sql: Sql): Promise<void> {
  try {
    await sql.unsafe("rollback");
  } catch {}
}

const attempts = 8;

/**
 * Runs a transaction that needs locks on tables in use. If a table is not free within 5 s (see withLock), it gives up,
 * so that no other session queues up behind us, and retries the whole transaction.
 */
export async function whenFree<T>(
  what: string,
  onRetry: StepOptions["onRetry"],
  transaction: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      const busy = isBusy(error);
      if (!busy || attempt === attempts) throw error;
      onRetry?.(`${what}: a table is in use, trying again`);
      await Bun.sleep(Math.min(2000, 100 * 2 ** attempt) * (0.5 + Math.random()));
    }
  }
}

/** lock_not_available, deadlock_detected */
function isBusy(error: unknown): boolean {
  return ["55P03", "40P01"].includes(errorCode(error) ?? "");
}
