import { and, eq, gt, gte, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { run } from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";
import type { Claim, ScheduleContext } from "./claim.ts";
import { behindNow } from "./database_clock.ts";
import { sendPrepared } from "./prepared.ts";

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
  return new Conflict("The run is no longer ours: its lease has ended, or it was finished");
}
