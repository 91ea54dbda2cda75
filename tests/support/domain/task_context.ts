import type { AppContext } from "../../../core/plugin/context.ts";
import type { Fault } from "../../../core/schedule/runs.ts";
import type { TaskContext } from "../../../worker/task.ts";

/** The context of a scheduled task, without a worker. Faults and postponed items are added to `faults`. */
export function taskContextOf(context: AppContext, faults: Fault[] = []): TaskContext {
  return {
    ...context,
    slot: context.clock.now(),
    signal: new AbortController().signal,
    transaction: (work) => context.db.transaction(work),
    fault: (item, reason) => void faults.push({ item, reason }),
    postpone: (item, reason) => void faults.push({ item, reason }),
    called: () => {},
  };
}
