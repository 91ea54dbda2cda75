import { audience } from "../../core/incident/summary/listed.ts";
import { openSummary, summarise, summaryName } from "../../core/incident/summary/summarise.ts";
import { windowOf } from "../../core/incident/summary/window.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask } from "../task.ts";

/** Sends each participant a summary of the day's incidents, limited to those they may read. */
export const incidentDailySummary: ScheduledTask = {
  async run(context) {
    const { db, slot, config } = context;
    const window = await windowOf(db, slot, config.timezone);
    const name = await summaryName(db, slot, config.timezone);
    const summary = await openSummary(db, window);
    return await inBatches(context, {
      find: (last, limit) => audience(db, window, last, limit),
      nameOf: (id) => `individual ${id}`,
      work: (tx, ids) => summarise(tx, { ...context, window, name }, summary, ids),
    });
  },
};
