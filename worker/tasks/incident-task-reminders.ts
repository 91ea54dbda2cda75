import { peopleOverdue, remindOfTasks } from "../../core/incident/task/remind.ts";
import { previousSlot } from "../../core/schedule/slots.ts";
import { findTask } from "../../core/schedule/tasks.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask, TaskContext } from "../task.ts";

const { timing } = findTask("incident-task-reminders")!;

/** Reminds people of their overdue tasks in Active incidents, once a day each. */
export const incidentTaskReminders: ScheduledTask = {
  run: async (context) => {
    const slot = latestSlot(context);
    return await inBatches(context, {
      find: (last, limit) => peopleOverdue(context.db, slot, last, limit),
      nameOf: (id) => `individual ${id}`,
      work: (tx, ids) => remindOfTasks(tx, { ...context, slot }, ids),
    });
  },
};

/**
 * Returns the run's slot, or the latest one if an interrupted run resumes later: reminders recorded under yesterday's
 * slot would be due again in the next one.
 */
function latestSlot({ slot, clock, config }: TaskContext): Date {
  const latest = previousSlot(timing, config.timezone, clock.now());
  return latest > slot ? latest : slot;
}
