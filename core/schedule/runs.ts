import { and, eq, gt, gte, inArray, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { run, runFault } from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";
import { type Claim, type ScheduleContext, sendPrepared } from "./claims.ts";
import { behindNow } from "./database_clock.ts";

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

type Holder = Pick<ScheduleContext, "db" | "databaseClock" | "leaseSeconds">;

/** The run while it is still the claim's: nobody has taken it over, and its lease, which only a Running one has, lasts. */
export function isHeld({ databaseClock }: Pick<ScheduleContext, "databaseClock">, claim: Claim) {
  return and(
    eq(run.task, claim.task),
    eq(run.slot, claim.slot),
    eq(run.owner, claim.owner),
    eq(run.attempt, claim.attempt),
    gt(run.leaseUntil, databaseClock.now()),
  );
}

/** A run waits no longer for a row that somebody else holds: it goes on with others, and comes back to that one. */
const lockSeconds = 5;

/** @returns whether the run is still ours, for another lease */
export async function renewLease(context: Holder, claim: Claim): Promise<boolean> {
  const renewed = await context.db
    .update(run)
    .set({ leaseUntil: behindNow(context.databaseClock, context.leaseSeconds) })
    .where(isHeld(context, claim))
    .returning({ slot: run.slot });
  return renewed.length > 0;
}

/** One more attempt that has ended for a reason that passes: it does not count as the death of a worker. */
function retriesWith({ attempt }: Claim, reason: string): SQL {
  const count = sql`coalesce((${run.result} -> 'retries' ->> 'count')::int, 0) + 1`;
  const retries = sql`jsonb_build_object('count', ${count}, 'attempt', ${attempt}::int, 'reason', ${reason}::text)`;
  return sql`${run.result} || jsonb_build_object('retries', ${retries})`;
}

/**
 * Ends the lease so many seconds from now, so that any worker makes the next attempt then.
 *
 * @returns whether the run was still ours
 */
export async function giveBack(
  context: Omit<Holder, "db"> & { db: Database | Transaction },
  claim: Claim,
  { seconds = 0, reason }: { seconds?: number; reason: string },
): Promise<boolean> {
  const leaseUntil = behindNow(context.databaseClock, seconds);
  const given = await context.db
    .update(run)
    .set({ leaseUntil, result: retriesWith(claim, reason) })
    .where(isHeld(context, claim))
    .returning({ slot: run.slot });
  return given.length > 0;
}

/** Notes that the worker of an attempt has lost its run but lives: the database was away for longer than a lease. */
export async function excuseAttempt({ db }: Pick<Holder, "db">, claim: Claim): Promise<void> {
  const { task, slot, attempt } = claim;
  await db
    .update(run)
    .set({ result: retriesWith(claim, "Its lease ended while its worker could not renew it") })
    .where(and(eq(run.task, task), eq(run.slot, slot), eq(run.state, "Running"), gte(run.attempt, attempt)));
}

/**
 * A transaction that only commits what a run does while the run is ours. It holds the row by a key share: renewing the
 * lease goes on beside it, taking the run over or finishing it does not. Should this process be frozen in the middle,
 * PostgreSQL ends the transaction after a lease, and nobody waits for it for ever.
 *
 * @throws Conflict, before `work` begins, when the run is no longer ours
 */
export async function whileHeld<T>(
  context: Holder,
  claim: Claim,
  timeoutSeconds: number,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return context.db.transaction(async (tx) => {
    const [held] = await sendPrepared(
      tx,
      "hold_run",
      sql`
        select set_config('idle_in_transaction_session_timeout', ${`${context.leaseSeconds}s`}, true),
          set_config('statement_timeout', ${`${timeoutSeconds}s`}, true),
          set_config('lock_timeout', ${`${lockSeconds}s`}, true)
        from ${run} where ${isHeld(context, claim)} for key share`,
    );
    if (!held) throw runLost();
    return await work(tx);
  });
}

/** Said to a worker that was away for too long; what it has not committed counts for nothing. */
export function runLost(): Conflict {
  return new Conflict("This worker lost the run: its lease expired, or the run has finished");
}
