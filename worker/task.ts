import type { PluginContext } from "../core/plugin/context.ts";
import type { Fault, TaskResult } from "../core/schedule/runs.ts";
import type { Database, Transaction } from "../drizzle/client.ts";
import { errorCode, operatorsError, transience, withoutQuery } from "../drizzle/database_error.ts";
import { Conflict, SvcError, Unavailable } from "../platform/errors.ts";

/**
 * What a task works with. `db` only reads: whatever a task writes goes through `transaction`, so a worker that has lost
 * its run (it was frozen, or cut off) changes nothing.
 */
export interface TaskContext extends Omit<PluginContext, "db"> {
  /** Outside a transaction, for reading. */
  db: Pick<Database, "select" | "selectDistinct" | "selectDistinctOn" | "$count">;
  /** When the run was due. `clock.now()` is the database's time, as all workers have it. */
  slot: Date;
  /** Aborts when the run is given up or lost: pass it to `callPlugin`, and look at it between two batches. */
  signal: AbortSignal;
  /**
   * Commits `work` only while the run is ours. One batch is one transaction; no plugin is called inside.
   * @throws Conflict when the run is lost: let it through
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Records that nothing could be done about one item, and why, in words fit to be kept; the rest goes on. */
  fault(item: Fault["item"], reason: Fault["reason"]): void;
  /**
   * The same of an item of which nothing could be done yet, since somebody else had it locked: the run ends, and is made
   * again while its slot lasts. Then it is a fault.
   */
  postpone(item: Fault["item"], reason: Fault["reason"]): void;
}

/**
 * The work of a task of the schedule. It may begin again after a crash: an effect in the database has a key, or a state
 * that it expects, by which it happens once. It throws when it can do nothing at all; one bad item is a `fault`.
 */
export interface ScheduledTask {
  run(context: TaskContext): Promise<TaskResult>;
}

/**
 * Does the work of one item. What goes wrong with it is its own fault, recorded with the reason; only a run that is lost
 * or given up, and a database that is away, end the others with it. An item that somebody else has locked is postponed.
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
 * Records why nothing could be done about an item.
 *
 * @returns why, in words for people
 * @throws the error itself where it ends the run
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
      ? "A number is larger than the database can keep"
      : "Something unexpected: the worker's log has more";
  const failure = known instanceof SvcError ? known.detail : unknown;
  if (!(error instanceof SvcError)) log.error({ err: cause, item }, "an item failed");
  if (transience(error) === "contention") postpone(item, lockedReason);
  else fault(item, failure);
  return failure;
}

export const lockedReason = "Something else kept it locked";

/** Whether it is not the fault of an item: the run is lost or given up, or the database is away. */
export function endsRun(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted || error instanceof Conflict || transience(error) === "outage") return true;
  const known = operatorsError(withoutQuery(error));
  return known instanceof Unavailable && known !== error;
}
