import type { PluginContext } from "../../../core/plugin/context.ts";
import type { Fault } from "../../../core/schedule/runs.ts";
import type { TaskContext } from "../../../worker/task.ts";

/** What a task of the schedule works with, without a worker around it. What it can do nothing about goes to `faults`, now or later. */
export function taskContextOf(context: PluginContext, faults: Fault[] = []): TaskContext {
  return {
    ...{ ...context, slot: context.clock.now(), signal: new AbortController().signal },
    transaction: (work) => context.db.transaction(work),
    fault: (item, reason) => void faults.push({ item, reason }),
    postpone: (item, reason) => void faults.push({ item, reason }),
  };
}
