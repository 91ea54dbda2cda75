import { and, desc, eq, lt, sql } from "drizzle-orm";
import { idempotencyKey, run, scheduledTask, worker } from "../../drizzle/schema/index.ts";
import type { ScheduleContext } from "./claim.ts";
import { behindNow } from "./database_clock.ts";

const runDays = 30;
const workerHours = 24;

/**
 * Deletes what nobody asks for any more: runs of more than 30 days ago, but for the last of each task, which says where
 * its slots go on; workers that are gone since yesterday; answers to repeated writes that have expired.
 */
export async function cleanUp({
  db,
  databaseClock,
}: Pick<ScheduleContext, "db" | "databaseClock">): Promise<void> {
  const last = db
    .select({ slot: run.slot })
    .from(run)
    .where(and(eq(run.task, scheduledTask.name), eq(run.trigger, "schedule")))
    .orderBy(desc(run.slot))
    .limit(1);
  const old = behindNow(databaseClock, -runDays * 24 * 3600);
  await db.execute(sql`
    delete from ${run} using ${scheduledTask}
    where ${run.task} = ${scheduledTask.name} and ${run.state} <> 'Running' and ${run.slot} < ${old}
      and (${run.trigger} = 'eager' or ${run.slot} < (${last}))`);
  await db.delete(worker).where(lt(worker.seenAt, behindNow(databaseClock, -workerHours * 3600)));
  await db.delete(idempotencyKey).where(lt(idempotencyKey.expiresAt, databaseClock.now()));
}
