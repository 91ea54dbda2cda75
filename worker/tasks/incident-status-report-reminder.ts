import { activeIncidents, remind } from "../../core/incident/reminder/remind.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask } from "../task.ts";

/** Reminds whoever is responsible for an Active incident to write a status report, as often as its priority says. */
export const incidentStatusReportReminder: ScheduledTask = {
  run: (context) =>
    inBatches(context, {
      find: (last, limit) => activeIncidents(context.db, last, limit),
      nameOf: (id) => `incident ${id}`,
      work: (tx, ids) => remind(tx, context, ids),
    }),
};
