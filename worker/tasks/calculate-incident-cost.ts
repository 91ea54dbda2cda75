import { computeCosts, formulaInForce, lockCostDue } from "../../core/cost/compute.ts";
import type { ScheduledTask } from "../task.ts";

/** Incidents of one transaction: few enough that nobody who changes one waits for long. */
const batch = 1000;

/** The cost of every incident that is Active, or has changed since its cost was computed. */
export const calculateIncidentCost: ScheduledTask = {
  async run({ transaction, clock }) {
    let [done, skipped, last] = [0, 0, 0];
    for (;;) {
      const { changed, ids } = await transaction(async (tx) => {
        const ids = await lockCostDue(tx, last, batch);
        const formula = await formulaInForce(tx);
        const changed = ids.length === 0 ? 0 : await computeCosts(tx, { ids, formula, now: clock.now() });
        return { changed, ids };
      });
      done += changed;
      skipped += ids.length - changed;
      if (ids.length < batch) return { done, skipped, failed: 0 };
      last = ids.at(-1)!;
    }
  },
};
