import { and, eq, gt, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { run } from "../../drizzle/schema/index.ts";
import { Conflict } from "../errors.ts";
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

/** @returns whether the run is still ours, for another lease */
export async function renewLease(context: Holder, claim: Claim): Promise<boolean> {
  const renewed = await context.db
    .update(run)
    .set({ leaseUntil: behindNow(context.databaseClock, context.leaseSeconds) })
    .where(isHeld(context, claim))
    .returning({ slot: run.slot });
  return renewed.length > 0;
}

/** Ends the lease before its time, so that another worker goes on at once. */
export async function giveBack(context: Holder, claim: Claim): Promise<void> {
  await context.db.update(run).set({ leaseUntil: context.databaseClock.now() }).where(isHeld(context, claim));
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
          set_config('statement_timeout', ${`${timeoutSeconds}s`}, true)
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
