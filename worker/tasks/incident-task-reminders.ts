import { peopleOverdue, remindOfTasks } from "../../core/task/remind.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask } from "../task.ts";

/** Reminds people of their overdue tasks in Active incidents, once a day each. */
export const incidentTaskReminders: ScheduledTask = {
  run: (context) =>
    inBatches(context, {
      find: (last, limit) => peopleOverdue(context.db, context.slot, last, limit),
      nameOf: (id) => `individual ${id}`,
      work: (tx, ids) => remindOfTasks(tx, context, ids),
    }),
};
