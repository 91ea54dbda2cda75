import { lt, sql } from "drizzle-orm";
import { idempotencyKey, run, runFault, scheduledTask, worker } from "../../drizzle/schema/index.ts";
import { fromNow } from "../database_clock.ts";
import type { ScheduleContext } from "./claims.ts";
import { hasEnded } from "./runs.ts";

type CleanContext = Pick<ScheduleContext, "db" | "databaseClock">;

const runDays = 30;
/** A task that runs every 30 s and always fails does so 2,880 times a day. */
const faultDays = 1;
const workerHours = 24;
/** How many rows are deleted at once, so that others do not wait long for them. */
const batch = 1000;

/** For the task `known`: the slot of its last finished run, whose faults are shown. */
const lastEnded = sql`(select slot from ${run} where task = known.name and ${hasEnded} order by slot desc limit 1)`;

/** For the task `known`: the slot of its last run that is Done. The next summary covers what has finished since. */
const lastDone = sql`(select slot from ${run} where task = known.name and state = 'Done' order by slot desc limit 1)`;

/**
 * Deletes what is no longer needed: runs older than 30 days, except each task's last slot (from which its slots
 * continue), its last finished run and its last run that is Done; items older than a day that a run could not process,
 * except those of the last finished run; workers that have been gone since yesterday; expired answers to repeated
 * writes.
 */
export async function cleanUp(context: CleanContext): Promise<void> {
  const { db, databaseClock } = context;
  while ((await deleteFaults(context)) === batch);
  while ((await deleteRuns(context)) === batch);
  await db.delete(worker).where(lt(worker.seenAt, fromNow(databaseClock, -workerHours * 3600)));
  await db.delete(idempotencyKey).where(lt(idempotencyKey.expiresAt, databaseClock.now()));
}

/**
 * Deletes a batch of old runs. It walks each task's runs from the oldest by the primary key, as far as they are old, so
 * the cost depends on how many are deleted and not on how many remain.
 *
 * @returns how many it deleted
 */
async function deleteRuns({ db, databaseClock }: CleanContext): Promise<number> {
  const deleted = await db.execute(sql`
    with limits as (select ${fromNow(databaseClock, -runDays * 24 * 3600)} as old)
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

/** Deletes a batch of old faults, oldest first, by the primary key. @returns how many it deleted */
async function deleteFaults({ db, databaseClock }: CleanContext): Promise<number> {
  const deleted = await db.execute(sql`
    with limits as (select ${fromNow(databaseClock, -faultDays * 24 * 3600)} as old)
    delete from ${runFault} where ctid = any (array(
      select found.row from limits cross join ${scheduledTask} as known cross join lateral (
        select fault.ctid as row from ${runFault} as fault
        where fault.task = known.name and fault.slot < least(limits.old, ${lastEnded})
        order by fault.slot limit ${batch}
      ) as found limit ${batch}
    )) returning true`);
  return deleted.length;
}
