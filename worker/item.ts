import { operatorsError } from "../core/database_error.ts";
import { Conflict, SvcError, Unavailable } from "../core/errors.ts";
import { withoutQuery } from "../drizzle/query_error.ts";
import type { TaskContext } from "./task.ts";

/**
 * Does the work of one item. What goes wrong with it is its own fault, recorded with the reason; only a run that is lost
 * or given up, and a database that is away, end the others with it.
 */
export async function workOnItem<T>(
  { log, signal, fault }: Pick<TaskContext, "log" | "signal" | "fault">,
  item: string,
  work: () => Promise<T>,
): Promise<{ value: T } | { failure: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    if (signal.aborted || error instanceof Conflict) throw error;
    const cause = withoutQuery(error);
    const known = operatorsError(cause);
    if (known instanceof Unavailable && known !== error) throw error;
    const failure =
      known instanceof SvcError ? known.detail : "Something unexpected: the worker's log has more";
    if (!(error instanceof SvcError)) log.error({ err: cause, item }, "an item could not be worked on");
    fault(item, failure);
    return { failure };
  }
}
