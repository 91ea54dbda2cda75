import { and, eq, gt, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { openDatabase, type Transaction } from "../../drizzle/client.ts";
import { operatorsError, withoutQuery } from "../../drizzle/database_error.ts";
import { assertServable, schemaStatus } from "../../drizzle/revision/status.ts";
import {
  delivery,
  flowStep,
  run,
  scheduledTask,
  statusReportReminder,
  task,
  worker,
} from "../../drizzle/schema/index.ts";
import { after, type Clock, systemClock } from "../../platform/clock.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { audit } from "../audit.ts";
import { readValue, variables } from "../config.ts";
import { keyOf } from "../outbox/deliver.ts";
import type { ScheduleContext } from "./claims.ts";
import { databaseClock, databaseNow } from "./database_clock.ts";
import { summaryTask, type TaskName } from "./tasks.ts";

export type OperatorContext = Pick<ScheduleContext, "db" | "databaseClock" | "config"> & { clock: Clock };

/**
 * Looks at the schedule, or changes it, from outside of a worker. Of the configuration only what it needs is read.
 *
 * @throws ConfigurationError for a time zone that is none
 * @throws Conflict when the schema is not one that this release can work on
 * @throws Unavailable when PostgreSQL does not answer or refuses us
 */
export async function operate<T>(
  { url, environment }: { url: string; environment: Environment },
  use: (context: OperatorContext) => Promise<T>,
): Promise<T> {
  const { value, fault } = readValue(environment, variables.timezone);
  if (fault) throw new ConfigurationError([fault]);
  const { db, close } = openDatabase(url, 4);
  try {
    assertServable(await schemaStatus(db));
    return await use({ db, databaseClock, config: { timezone: value as string }, clock: systemClock });
  } catch (error) {
    throw operatorsError(withoutQuery(error));
  } finally {
    await close();
  }
}

type PauseContext = Pick<ScheduleContext, "db" | "databaseClock"> & { clock: Clock };

/** From now on no slot of the task is claimed; a run that is under way goes on. @returns whether that is news */
export async function pauseTask(
  { db, databaseClock, clock }: PauseContext,
  name: TaskName,
): Promise<boolean> {
  const now = databaseClock.now();
  return db.transaction(async (tx) => {
    await tx.insert(scheduledTask).values({ name, since: now }).onConflictDoNothing();
    const paused = await tx
      .update(scheduledTask)
      .set({ pausedAt: now })
      .where(and(eq(scheduledTask.name, name), isNull(scheduledTask.pausedAt)))
      .returning({ name: scheduledTask.name });
    if (paused.length === 0) return false;
    await audit(tx, { at: clock.now(), actor: "system", action: "scheduled_task.paused", subject: name });
    return true;
  });
}

/** From now on its slots are claimed again; those of the pause are not made up for. @returns whether that is news */
export async function resumeTask(
  { db, databaseClock, clock }: PauseContext,
  name: TaskName,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const resumed = await tx
      .update(scheduledTask)
      .set({ pausedAt: null, since: databaseClock.now() })
      .where(and(eq(scheduledTask.name, name), isNotNull(scheduledTask.pausedAt)))
      .returning({ name: scheduledTask.name });
    if (resumed.length === 0) return false;
    await audit(tx, { at: clock.now(), actor: "system", action: "scheduled_task.resumed", subject: name });
    return true;
  });
}

/** Longer than a lease lasts: one that ends later was taken when the clock was ahead. */
const longestLeaseSeconds = 60;
/** Longer than a delivery ever waits for its next attempt. */
const longestBackoffSeconds = 3600 + 60;

/** What a database clock that was ahead, and is right again, has left for a time to come. */
export interface Ahead {
  now: Date;
  /** Runs of slots to come. */
  runs: number;
  /** The last of these slots. */
  lastSlot: Date | null;
  /** Whether there is anything else that waits for that time: a lease, a reminder, a delivery, a task's beginning. */
  waits: boolean;
}

/** Says what lies ahead of the database's time. */
export async function readAhead({ db, databaseClock }: OperatorContext): Promise<Ahead> {
  const now = await databaseNow(db, databaseClock);
  const [slots] = await db
    .select({ runs: sql<number>`count(*)::int`, lastSlot: sql`max(${run.slot})`.mapWith(run.slot) })
    .from(run)
    .where(gt(run.slot, now));
  const waits = await Promise.all([
    db.$count(run, gt(run.leaseUntil, after(now, longestLeaseSeconds))),
    db.$count(scheduledTask, gt(scheduledTask.since, now)),
    db.$count(worker, gt(worker.seenAt, now)),
    db.$count(task, isAhead(task.lastReminderAt, now)),
    db.$count(statusReportReminder, isAhead(statusReportReminder.remindedAt, now)),
    db.$count(delivery, gt(delivery.dueAt, after(now, longestBackoffSeconds))),
    db.$count(flowStep, gt(flowStep.dueAt, after(now, longestBackoffSeconds))),
  ]);
  return {
    now,
    runs: slots?.runs ?? 0,
    lastSlot: slots?.lastSlot ?? null,
    waits: waits.some((count) => count > 0),
  };
}

/**
 * Ends the standstill after the database's clock was ahead: deletes the runs of slots to come, so that they run when they
 * are due, and has nothing wait for a time beyond now. What such a run did, it has done; the slot does it again when it
 * comes, and the daily summary of such a day is sent again, under other keys.
 *
 * @returns how many runs were deleted
 */
export async function rewind({ db, databaseClock, clock }: OperatorContext): Promise<number> {
  return db.transaction(async (tx) => {
    // Nobody claims meanwhile.
    await tx
      .select({ name: scheduledTask.name })
      .from(scheduledTask)
      .orderBy(scheduledTask.name)
      .for("update");
    const now = await databaseNow(tx, databaseClock);
    const deleted = await tx.delete(run).where(gt(run.slot, now)).returning({ task: run.task });
    await tx
      .update(run)
      .set({ leaseUntil: now })
      .where(gt(run.leaseUntil, after(now, longestLeaseSeconds)));
    await tx.delete(worker).where(gt(worker.seenAt, now));
    await bringBack(tx, run, run.startedAt, now);
    await bringBack(tx, run, run.finishedAt, now);
    await bringBack(tx, scheduledTask, scheduledTask.since, now);
    await bringBack(tx, scheduledTask, scheduledTask.pausedAt, now);
    await bringBack(tx, task, task.lastReminderAt, now);
    await bringBack(tx, statusReportReminder, statusReportReminder.remindedAt, now);
    await renameSummaries(tx, now);
    await bringWorkBack(tx, now);
    await audit(tx, {
      ...{ at: clock.now(), actor: "system", action: "schedule.rewound" },
      data: { runs: deleted.length },
    });
    return deleted.length;
  });
}

/** Of a time that PostgreSQL has as `infinity` the schedule says what is wrong: that is no clock's doing. */
function isAhead(column: PgColumn, now: Date): SQL | undefined {
  return and(gt(column, now), sql`isfinite(${column})`);
}

async function bringBack(tx: Transaction, table: PgTable, column: PgColumn, now: Date): Promise<void> {
  const name = sql.identifier(column.name);
  await tx.execute(
    sql`update ${table} set ${name} = ${now.toISOString()}::timestamptz where ${isAhead(column, now)}`,
  );
}

/**
 * Frees the keys of summaries of slots to come (`<date>` becomes `<date>~<now>`): the next one of that date finds that
 * it has to take keys of its own, since who has got the first one would not take a second under its key. When they were
 * queued stays: by that they are found.
 */
async function renameSummaries(tx: Transaction, now: Date): Promise<void> {
  const begins = `${keyOf(summaryTask)}/`;
  await tx.execute(sql`
    with ahead as (
      select key, regexp_replace(key, '^([^/]*/[0-9]{4}-[0-9]{2}-[0-9]{2})', ${`\\1~${now.getTime()}`}) as renamed
      from ${delivery}
      where task = ${summaryTask} and queued_at > ${now.toISOString()}::timestamptz and starts_with(key, ${begins})
    )
    update ${delivery} set key = ahead.renamed from ahead where ${delivery.key} = ahead.key`);
}

/** Of durable work, what waits for a time that no backoff and no lease reaches. */
async function bringWorkBack(tx: Transaction, now: Date): Promise<void> {
  const beyond = after(now, longestBackoffSeconds);
  await tx.update(delivery).set({ dueAt: now, leaseUntil: null }).where(gt(delivery.dueAt, beyond));
  const idle = sql`case when ${eq(flowStep.state, "Running")} then 'Pending' else ${flowStep.state} end`;
  await tx
    .update(flowStep)
    .set({ state: idle, dueAt: now, leaseUntil: null })
    .where(gt(flowStep.dueAt, beyond));
}
