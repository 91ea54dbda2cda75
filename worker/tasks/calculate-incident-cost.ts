import { computeCosts, costDue, formulaInForce, lockForCost } from "../../core/incident/cost/compute.ts";
import { inBatches } from "../batches.ts";
import type { ScheduledTask } from "../task.ts";

/** Incidents per transaction: few enough that concurrent changes do not wait for long. */
const size = 1000;

/** Computes the cost of every incident that is Active or has changed since the last computation. */
export const calculateIncidentCost: ScheduledTask = {
  async run(context) {
    const { db, clock } = context;
    const formula = await formulaInForce(db);
    return await inBatches(context, {
      size,
      find: (last, limit) => costDue(db, last, limit),
      nameOf: (id) => `incident ${id}`,
      work: async (tx, due) => {
        const { ids, locked } = await lockForCost(tx, due);
        const done = ids.length > 0 ? await computeCosts(tx, { ids, formula, now: clock.now() }) : 0;
        return { done, skipped: ids.length - done, faults: [], locked };
      },
    });
  },
};
