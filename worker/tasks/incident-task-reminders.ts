import { endlessTasks, peopleOverdue, remindOfTasks } from "../../core/incident/task/remind.ts";
import { previousSlot } from "../../core/schedule/slots.ts";
import { findTask } from "../../core/schedule/tasks.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask, TaskContext } from "../task.ts";

const { timing } = findTask("incident-task-reminders")!;

/** Reminds people of their overdue tasks in Active incidents, once a day each. */
export const incidentTaskReminders: ScheduledTask = {
  run: async (context) => {
    const slot = latestSlot(context);
    const endless = await endlessTasks(context.db, slot);
    for (const { item, reason } of endless) context.fault(item, reason);
    const result = await inBatches(context, {
      find: (last, limit) => peopleOverdue(context.db, slot, last, limit),
      nameOf: (id) => `individual ${id}`,
      work: (tx, ids) => remindOfTasks(tx, { ...context, slot }, ids),
    });
    return { ...result, failed: result.failed + endless.length };
  },
};

/**
 * The slot of the run, or the latest one, where the run was interrupted and goes on behind it: what is noted as of a slot
 * of yesterday would be due again in the next.
 */
function latestSlot({ slot, clock, config }: TaskContext): Date {
  const latest = previousSlot(timing, config.timezone, clock.now());
  return latest > slot ? latest : slot;
}
