import {
  computeCosts,
  costDue,
  endlessIncidents,
  formulaInForce,
  lockForCost,
} from "../../core/incident/cost/compute.ts";
import { endlessReason } from "../../drizzle/endless.ts";
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
        const endless = await endlessIncidents(tx, ids);
        const faults = endless.map(({ name }) => ({ item: name, reason: endlessReason }));
        const rest = ids.filter((id) => endless.every((one) => one.id !== id));
        const done = rest.length > 0 ? await computeCosts(tx, { ids: rest, formula, now: clock.now() }) : 0;
        return { done, skipped: rest.length - done, faults, locked };
      },
    });
  },
};
