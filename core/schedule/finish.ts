import { inArray, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { run, runFault } from "../../drizzle/schema/index.ts";
import type { Claim, ScheduleContext } from "./claim.ts";
import { giveBack, isHeld } from "./lease.ts";
import { sendPrepared } from "./prepared.ts";

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

/** A run that has ended and was not Missed: what the last such one could do nothing about is kept and told, always. */
export const hasEnded: SQL = inArray(run.state, ["Done", "Failed"]);

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
  { faults, ...ending }: Ending,
): Promise<boolean> {
  if (faults.length === 0) return end(context.db, context, claim, ending);
  return context.db.transaction(async (tx) => {
    if (!(await end(tx, context, claim, ending))) return false;
    await keepFaults(tx, claim, faults.slice(0, mostFaults));
    return true;
  });
}

/**
 * Ends an attempt for a reason that passes: after `seconds` any worker makes the next one. What the attempt could do
 * nothing about is kept: some of it is looked at again only when it changes.
 *
 * @returns whether the run was still ours
 */
export async function putOff(
  context: ScheduleContext,
  claim: Claim,
  { seconds, reason, faults }: { seconds: number; reason: string; faults: readonly Fault[] },
): Promise<boolean> {
  return context.db.transaction(async (tx) => {
    if (!(await giveBack({ ...context, db: tx }, claim, { seconds, reason }))) return false;
    if (faults.length > 0) await keepFaults(tx, claim, faults.slice(0, mostFaults));
    return true;
  });
}

/** In one statement: locking the row waits for what is still open, and whether it is ours is judged behind that. */
async function end(
  db: Database | Transaction,
  { databaseClock }: Pick<ScheduleContext, "databaseClock">,
  claim: Claim,
  { result, error }: Omit<Ending, "faults">,
): Promise<boolean> {
  const ended = await sendPrepared(
    db,
    "end_run",
    sql`
      with held as (
        select task, slot, lease_until from ${run} where ${isHeld({ databaseClock }, claim)} for update
      )
      update ${run} set
        state = ${error === undefined ? "Done" : "Failed"},
        error = ${error ?? null},
        result = ${run.result} || ${JSON.stringify(result ?? {})}::jsonb,
        lease_until = null,
        finished_at = ${databaseClock.now()}
      from held
      where ${run.task} = held.task and ${run.slot} = held.slot and held.lease_until > ${databaseClock.now()}
      returning true`,
  );
  return ended.length > 0;
}

/** The last reason that was found for an item counts, also of those of an attempt before. */
async function keepFaults(tx: Transaction, { task, slot }: Claim, faults: readonly Fault[]): Promise<void> {
  const last = new Map(faults.map((fault) => [fault.item, { task, slot, ...fault }]));
  await tx
    .insert(runFault)
    .values([...last.values()])
    .onConflictDoUpdate({
      target: [runFault.task, runFault.slot, runFault.item],
      set: { reason: sql`excluded.reason` },
    });
}
