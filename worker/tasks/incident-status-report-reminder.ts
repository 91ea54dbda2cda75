import { activeIncidents, remind } from "../../core/incident/reminder/remind.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask } from "../task.ts";

/** Reminds those responsible for an Active incident to write a status report, at its priority's interval. */
export const incidentStatusReportReminder: ScheduledTask = {
  run: (context) =>
    inBatches(context, {
      find: (last, limit) => activeIncidents(context.db, last, limit),
      nameOf: (id) => `incident ${id}`,
      work: (tx, ids) => remind(tx, context, ids),
    }),
};
