import { audience } from "../../core/summary/listed.ts";
import { openSummary, summarise } from "../../core/summary/summarise.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask } from "../task.ts";

/** Tells everybody who takes part in an incident how the day's incidents stand, as far as they may read of them. */
export const incidentDailySummary: ScheduledTask = {
  async run(context) {
    const { db, slot } = context;
    const summary = await openSummary(db, slot);
    return await inBatches(context, {
      find: (last, limit) => audience(db, slot, last, limit),
      nameOf: (id) => `individual ${id}`,
      work: (tx, ids) => summarise(tx, context, summary, ids),
    });
  },
};
