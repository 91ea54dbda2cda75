import { and, eq, gt, gte, inArray, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { type RunResult, run, runFault } from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";
import { fromNow } from "../database_clock.ts";
import { type Claim, type ScheduleContext, sendPrepared } from "./claims.ts";

/** An item that the run could not process, and why. */
export interface Fault {
  item: string;
  reason: string;
}

/** The number of items by outcome. */
export interface TaskResult {
  done: number;
  /** There was nothing to do. */
  skipped: number;
  failed: number;
}

/** How a run ended. `error` explains to people why it failed. */
export interface Ending {
  result?: TaskResult & Pick<RunResult, "failing_plugins">;
  error?: string;
  faults: readonly Fault[];
}

/** A run that has ended and was not Missed. The faults of the last one are always kept and shown. */
export const hasEnded: SQL = inArray(run.state, ["Done", "Failed"]);

/** How many faults of a run are kept. The result counts all of them. */
const mostFaults = 1000;

/**
 * Records how a run has ended. It waits for an open transaction of the run, so that none of its effects come after its
 * end.
 *
 * @returns whether the run was still ours
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
 * Ends an attempt for a transient reason: after `seconds` any worker makes the next one. The attempt's faults are kept,
 * because some items are processed again only when they change.
 *
 * @returns whether the run was still ours
 */
export async function putOff(
  context: ScheduleContext,
  claim: Claim,
  { seconds, reason, faults }: { seconds: number; reason: string; faults: readonly Fault[] },
): Promise<boolean> {
  return context.db.transaction(async (tx) => {
    if (!(await releaseRun({ ...context, db: tx }, claim, { seconds, reason }))) return false;
    if (faults.length > 0) await keepFaults(tx, claim, faults.slice(0, mostFaults));
    return true;
  });
}

/** One statement: locking the row waits for open transactions, and then checks that the run is still ours. */
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

/** Keeps the latest reason for each item, across all attempts. */
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

/**
 * Matches the run while the claim holds: nobody has taken it over, and its lease, which only a Running one has, lasts.
 */
function isHeld({ databaseClock }: Pick<ScheduleContext, "databaseClock">, claim: Claim) {
  return and(
    eq(run.task, claim.task),
    eq(run.slot, claim.slot),
    eq(run.owner, claim.owner),
    eq(run.attempt, claim.attempt),
    gt(run.leaseUntil, databaseClock.now()),
  );
}

/** How long a run waits for a locked row before it continues with others and comes back to it later. */
const lockSeconds = 5;

/** Extends the lease. @returns whether the run is still ours */
export async function extendRun(context: Holder, claim: Claim): Promise<boolean> {
  const renewed = await context.db
    .update(run)
    .set({ leaseUntil: fromNow(context.databaseClock, context.leaseSeconds) })
    .where(isHeld(context, claim))
    .returning({ slot: run.slot });
  return renewed.length > 0;
}

/** Counts one more attempt that ended for a transient reason, which is not the death of a worker. */
function retriesWith({ attempt }: Claim, reason: string): SQL {
  const count = sql`coalesce((${run.result} -> 'retries' ->> 'count')::int, 0) + 1`;
  const retries = sql`jsonb_build_object('count', ${count}, 'attempt', ${attempt}::int, 'reason', ${reason}::text)`;
  return sql`${run.result} || jsonb_build_object('retries', ${retries})`;
}

/**
 * Ends the lease in `seconds`, so that any worker can then make the next attempt.
 *
 * @returns whether the run was still ours
 */
export async function releaseRun(
  context: Omit<Holder, "db"> & { db: Database | Transaction },
  claim: Claim,
  { seconds = 0, reason }: { seconds?: number; reason: string },
): Promise<boolean> {
  const leaseUntil = fromNow(context.databaseClock, seconds);
  const given = await context.db
    .update(run)
    .set({ leaseUntil, result: retriesWith(claim, reason) })
    .where(isHeld(context, claim))
    .returning({ slot: run.slot });
  return given.length > 0;
}

/** Records that an attempt's worker lost its run but is alive: the database was away for longer than a lease. */
export async function forgiveAttempt({ db }: Pick<Holder, "db">, claim: Claim): Promise<void> {
  const { task, slot, attempt } = claim;
  await db
    .update(run)
    .set({ result: retriesWith(claim, "Its lease ended while its worker could not renew it") })
    .where(and(eq(run.task, task), eq(run.slot, slot), eq(run.state, "Running"), gte(run.attempt, attempt)));
}

/**
 * Runs a transaction that commits only while the run is ours. It holds the run's row with a key share lock, which
 * allows renewing the lease but not taking the run over or finishing it. If this process freezes, PostgreSQL ends the
 * transaction after the duration of a lease, so nobody waits for it forever.
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

/** The error for a worker that was away for too long. What it has not committed is lost. */
export function runLost(): Conflict {
  return new Conflict("This worker lost the run: its lease expired, or the run has finished");
}
