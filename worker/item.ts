import { operatorsError, transience } from "../drizzle/database_error.ts";
import { Conflict, SvcError, Unavailable } from "../platform/errors.ts";
import { withoutQuery } from "../drizzle/query_error.ts";
import type { TaskContext } from "./task.ts";

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
  const failure =
    known instanceof SvcError ? known.detail : "Something unexpected: the worker's log has more";
  if (!(error instanceof SvcError)) log.error({ err: cause, item }, "an item could not be worked on");
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
