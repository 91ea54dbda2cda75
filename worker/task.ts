import type { AppContext } from "../core/plugin/context.ts";
import type { Fault, TaskResult } from "../core/schedule/runs.ts";
import type { Database, Transaction } from "../drizzle/client.ts";
import { errorCode, operatorsError, transience, withoutQuery } from "../drizzle/database_error.ts";
import { Conflict, SvcError, Unavailable } from "../platform/errors.ts";

/**
 * What a task works with. `db` only reads. All writes go through `transaction`, so a worker that has lost its run (it
 * was frozen or disconnected) changes nothing.
 */
export interface TaskContext extends Omit<AppContext, "db"> {
  /** For reading, outside a transaction. */
  db: Pick<Database, "select" | "selectDistinct" | "selectDistinctOn" | "$count">;
  /** When the run was due. `clock.now()` is the database's time, which all workers share. */
  slot: Date;
  /** Aborts when the run is released or lost. Pass it to `callPlugin`, and check it between batches. */
  signal: AbortSignal;
  /**
   * Commits `work` only while this worker has the run. Use one transaction per batch, and call no plugin inside.
   * @throws Conflict when the run is lost: do not catch it
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Records that one item could not be processed, with a reason that is safe to store. The rest continues. */
  fault(item: Fault["item"], reason: Fault["reason"]): void;
  /**
   * Records that another transaction had an item locked. The run ends and is retried while its slot lasts; after that
   * the item is a fault.
   */
  postpone(item: Fault["item"], reason: Fault["reason"]): void;
  /** Counts a call of a plugin: one that fails each time is reported as failing. */
  called(plugin: string, succeeded: boolean): void;
}

/**
 * A scheduled task's implementation. It may restart after a crash: every effect in the database needs a key or an
 * expected state, so that it happens once. It throws only when it can do nothing at all; one bad item is a `fault`.
 */
export interface ScheduledTask {
  run(context: TaskContext): Promise<TaskResult>;
}

/**
 * Processes one item. An error is recorded as this item's fault; only a lost or aborted run and an unavailable database
 * end the whole run. An item that another transaction has locked is postponed.
 */
export async function workOnItem<T>(
  context: Pick<TaskContext, "log" | "signal" | "fault" | "postpone">,
  item: string,
  work: () => Promise<T>,
): Promise<{ value: T } | { failure: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    return { failure: recordFailure(context, item, error) };
  }
}

/**
 * Records why an item could not be processed.
 *
 * @returns the reason, for users
 * @throws the error itself, if it ends the run
 */
export function recordFailure(
  { log, signal, fault, postpone }: Pick<TaskContext, "log" | "signal" | "fault" | "postpone">,
  item: string,
  error: unknown,
): string {
  if (endsRun(error, signal)) throw error;
  const cause = withoutQuery(error);
  const known = operatorsError(cause);
  const unknown =
    errorCode(cause) === "22003"
      ? "A number is too large to store"
      : "Unexpected error; see the worker's log";
  const failure = known instanceof SvcError ? known.detail : unknown;
  if (!(error instanceof SvcError)) log.error({ err: cause, item }, "an item failed");
  if (transience(error) === "contention") postpone(item, lockedReason);
  else fault(item, failure);
  return failure;
}

export const lockedReason = "Another transaction kept it locked";

/** Whether the error is not the item's: the run is lost or aborted, or the database is unavailable. */
export function endsRun(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted || error instanceof Conflict || transience(error) === "outage") return true;
  const known = operatorsError(withoutQuery(error));
  return known instanceof Unavailable && known !== error;
}
