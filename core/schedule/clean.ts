import { lt, sql } from "drizzle-orm";
import { idempotencyKey, run, runFault, scheduledTask, worker } from "../../drizzle/schema/index.ts";
import type { ScheduleContext } from "./claims.ts";
import { behindNow } from "./database_clock.ts";
import { hasEnded } from "./runs.ts";

type CleanContext = Pick<ScheduleContext, "db" | "databaseClock">;

const runDays = 30;
/** What fails each time does so 2,880 times a day in a task of every 30 s. */
const faultDays = 1;
const workerHours = 24;
/** So many rows go at once, so that nobody waits long for them. */
const batch = 1000;

/** Of the task `known`: the slot of its last run that has ended, which says what is wrong. */
const lastEnded = sql`(select slot from ${run} where task = known.name and ${hasEnded} order by slot desc limit 1)`;

/** The slot of its last run that is Done: the next summary tells of what has ended since. */
const lastDone = sql`(select slot from ${run} where task = known.name and state = 'Done' order by slot desc limit 1)`;

/**
 * Deletes what nobody asks for any more: runs of more than 30 days ago, but for the last slot of each task, which says
 * where its slots go on, its last run that has ended and the last one that is Done; items of more than a day ago that a run could do nothing
 * about, but for those of that one; workers that are gone since yesterday; answers to repeated writes that have
 * expired.
 */
export async function cleanUp(context: CleanContext): Promise<void> {
  const { db, databaseClock } = context;
  while ((await deleteFaults(context)) === batch);
  while ((await deleteRuns(context)) === batch);
  await db.delete(worker).where(lt(worker.seenAt, behindNow(databaseClock, -workerHours * 3600)));
  await db.delete(idempotencyKey).where(lt(idempotencyKey.expiresAt, databaseClock.now()));
}

/**
 * Deletes a batch of old runs. Each task's are walked from the oldest one on, by the primary key, as far as they are old:
 * what it costs depends on how many go, and not on how many stay.
 *
 * @returns how many there were
 */
async function deleteRuns({ db, databaseClock }: CleanContext): Promise<number> {
  const deleted = await db.execute(sql`
    with limits as (select ${behindNow(databaseClock, -runDays * 24 * 3600)} as old)
    delete from ${run} where ctid = any (array(
      select found.row from limits cross join ${scheduledTask} as known cross join lateral (
        select run.ctid as row from ${run} as run
        where run.task = known.name and run.slot < limits.old and run.state <> 'Running'
          and run.slot is distinct from ${lastEnded} and run.slot is distinct from ${lastDone} and (run.trigger = 'eager' or run.slot < (
            select slot from ${run} where task = known.name and trigger = 'schedule' order by slot desc limit 1
          ))
        order by run.slot limit ${batch}
      ) as found limit ${batch}
    )) returning true`);
  return deleted.length;
}

/** Deletes a batch of old faults, oldest first, by the primary key. @returns how many there were */
async function deleteFaults({ db, databaseClock }: CleanContext): Promise<number> {
  const deleted = await db.execute(sql`
    with limits as (select ${behindNow(databaseClock, -faultDays * 24 * 3600)} as old)
    delete from ${runFault} where ctid = any (array(
      select found.row from limits cross join ${scheduledTask} as known cross join lateral (
        select fault.ctid as row from ${runFault} as fault
        where fault.task = known.name and fault.slot < least(limits.old, ${lastEnded})
        order by fault.slot limit ${batch}
      ) as found limit ${batch}
    )) returning true`);
  return deleted.length;
}
