import { and, eq, lte } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { run } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import type { Claim, ScheduleContext } from "./claim.ts";
import { behindNow } from "./database_clock.ts";
import { catchUpSeconds } from "./due.ts";
import type { Running } from "./seen.ts";
import type { TaskDefinition } from "./tasks.ts";

/** A run that takes its worker down each time is given up in the end. */
const mostDeaths = 5;

/**
 * Makes the run of a dead worker ours. A transaction of that run which is still open is not waited for (`skip locked`):
 * it holds the row by a key share, so taking over is the one thing that cannot happen beside it.
 *
 * @returns undefined when it cannot be had, or is not worth being run again and has been recorded as failed
 */
export async function takeOver(
  tx: Transaction,
  { databaseClock, owner, leaseSeconds }: ScheduleContext,
  task: TaskDefinition,
  { slot, attempt, trigger }: Running,
  now: Date,
): Promise<Claim | undefined> {
  const isIt = and(eq(run.task, task.name), eq(run.slot, slot), eq(run.attempt, attempt));
  const [ours] = await tx
    .select({ result: run.result })
    .from(run)
    .where(and(isIt, eq(run.state, "Running"), lte(run.leaseUntil, databaseClock.now())))
    .for("update", { skipLocked: true });
  if (!ours) return undefined;
  const { retries } = ours.result;
  const tooLate = "daily" in task.timing && after(slot, catchUpSeconds) < now;
  if (tooLate || attempt - (retries?.count ?? 0) >= mostDeaths) {
    const error = !tooLate
      ? `Its worker died, ${mostDeaths} times`
      : retries
        ? `It was tried ${attempt} times within six hours; the last reason to try again: ${retries.reason}`
        : "Its worker died, and no other was there within six hours";
    const finishedAt = databaseClock.now();
    await tx.update(run).set({ state: "Failed", error, leaseUntil: null, finishedAt }).where(isIt);
    return undefined;
  }
  const leaseUntil = behindNow(databaseClock, leaseSeconds);
  await tx
    .update(run)
    .set({ owner, attempt: attempt + 1, leaseUntil, startedAt: databaseClock.now() })
    .where(isIt);
  return { task: task.name, slot, owner, attempt: attempt + 1, trigger, retries: retries?.count ?? 0 };
}
