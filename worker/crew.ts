import { after } from "../platform/clock.ts";
import type { ScheduleContext } from "../core/schedule/claim.ts";
import { previousSlot } from "../core/schedule/slot.ts";
import type { TaskDefinition } from "../core/schedule/tasks.ts";

/** So long a worker lets another one try first: time to claim a slot, and to begin with it. */
const turnSeconds = 0.01;

/**
 * The workers that share the schedule, as far as we have heard of them. For each slot there is an order of them, the same
 * wherever it is computed, so that they do not all come at the same moment and each is the first for its share. Nothing
 * depends on it but who comes when: they still race for the slot.
 */
export class Crew {
  #workers: readonly string[] = [];

  hear(workers: readonly string[]): void {
    this.#workers = workers;
  }

  /** When to look at a task that has to be looked at by then. What is no slot, as the end of a lease, waits for nobody. */
  inTurn({ owner, config }: Pick<ScheduleContext, "owner" | "config">, task: TaskDefinition, at: Date): Date {
    if (previousSlot(task.timing, config.timezone, at) < at) return at;
    const rank = (worker: string) => Bun.hash.wyhash(`${worker} ${task.name} ${at.getTime()}`);
    const ours = rank(owner);
    const before = this.#workers.filter((worker) => worker !== owner && rank(worker) < ours);
    return after(at, before.length * turnSeconds);
  }
}
