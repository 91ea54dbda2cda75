import { sql } from "drizzle-orm";
import { run, runFault } from "../../drizzle/schema/index.ts";
import type { Claim, ScheduleContext } from "./claim.ts";
import { isHeld } from "./lease.ts";

/** An item that the run could do nothing about, and why. */
export interface Fault {
  item: string;
  reason: string;
}

/** Items by what became of them. */
export interface TaskResult {
  done: number;
  /** There was nothing to do about them. */
  skipped: number;
  failed: number;
}

/** How a run ended; `error` says, in words for people, why it failed. */
export interface Ending {
  result?: TaskResult;
  error?: string;
  faults: readonly Fault[];
}

/** Faults that are kept of one run; the result counts all of them. */
const mostFaults = 1000;

/**
 * Records how a run has ended. It waits for a transaction of the run that is still open, so that none of its effects
 * come after its end.
 *
 * @returns whether the run was still ours to be finished
 */
export async function finishRun(
  context: Pick<ScheduleContext, "db" | "databaseClock">,
  claim: Claim,
  { result, error, faults }: Ending,
): Promise<boolean> {
  return context.db.transaction(async (tx) => {
    const ours = isHeld(context, claim);
    const [held] = await tx.select({ slot: run.slot }).from(run).where(ours).for("update");
    if (!held) return false;
    const { task, slot } = claim;
    const rows = faults.slice(0, mostFaults).map((fault) => ({ task, slot, ...fault }));
    if (rows.length > 0) {
      const last = [...new Map(rows.map((row) => [row.item, row])).values()];
      await tx
        .insert(runFault)
        .values(last)
        .onConflictDoUpdate({
          target: [runFault.task, runFault.slot, runFault.item],
          set: { reason: sql`excluded.reason` },
        });
    }
    const finished = await tx
      .update(run)
      .set({
        state: error === undefined ? "Done" : "Failed",
        error: error ?? null,
        result: sql`${run.result} || ${JSON.stringify(result ?? {})}::jsonb`,
        leaseUntil: null,
        finishedAt: context.databaseClock.now(),
      })
      .where(ours)
      .returning({ slot: run.slot });
    return finished.length > 0;
  });
}
