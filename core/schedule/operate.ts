import { and, eq, gt, inArray, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { type Database, openDatabase, type Transaction } from "../../drizzle/client.ts";
import { operatorsError, withoutQuery } from "../../drizzle/database_error.ts";
import { assertServable, schemaStatus } from "../../drizzle/revision/status.ts";
import {
  accessLease,
  delivery,
  flowStep,
  run,
  scheduledTask,
  statusReportReminder,
  task,
  token,
  worker,
} from "../../drizzle/schema/index.ts";
import { after, type Clock, systemClock } from "../../platform/clock.ts";
import { ConfigurationError, Conflict } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { audit } from "../audit.ts";
import { readValue, variables } from "../config.ts";
import { databaseClock, databaseNow } from "../database_clock.ts";
import { keyOf } from "../outbox/deliver.ts";
import { claimNow, type ScheduleContext } from "./claims.ts";
import { releaseRun } from "./runs.ts";
import { findTask, summaryTask, type TaskName } from "./tasks.ts";

export type OperatorContext = Pick<ScheduleContext, "db" | "databaseClock" | "config"> & { clock: Clock };

/**
 * Reads or changes the schedule from outside of a worker. It reads only the configuration that it needs.
 *
 * @throws ConfigurationError for an invalid time zone
 * @throws Conflict when this release cannot work with the schema
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

/**
 * Pauses the task: no slot is claimed until it is resumed, but a run in progress continues.
 * @returns false if it was paused already
 */
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

/** Resumes the task. Slots during the pause are not made up for. @returns false if it was not paused */
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

/** Until a worker takes the run over. If this process ends before it is released, it is free after that. */
const askedSeconds = 30;

/**
 * Asks the workers to run the task now: claims a run as `svc scheduler start --eager` does, and releases it for the first
 * worker that looks, within half a minute.
 *
 * @throws Conflict when the task is running, or paused, as no worker takes over its run then
 */
export async function startTask(
  context: { db: Database; clock: Clock; config: { timezone: string } },
  { name, by }: { name: TaskName; by: string },
): Promise<void> {
  const { db, clock, config } = context;
  await db.transaction(async (tx) => {
    const schedule = {
      db: tx,
      databaseClock,
      config,
      owner: crypto.randomUUID(),
      leaseSeconds: askedSeconds,
    };
    const claim = await claimNow(schedule, findTask(name)!);
    const isPaused = and(eq(scheduledTask.name, name), isNotNull(scheduledTask.pausedAt));
    if ((await tx.$count(scheduledTask, isPaused)) > 0)
      throw new Conflict(`${name} is paused: svc scheduler resume ${name}`);
    await releaseRun(schedule, claim, { reason: `${by} asked for it` });
    await audit(tx, { at: clock.now(), actor: by, action: "scheduled_task.started", subject: name });
  });
}

/** Longer than a lease: one that ends later was taken while the clock was ahead. */
const longestLeaseSeconds = 60;
/** Longer than a delivery ever waits for its next attempt. */
const longestBackoffSeconds = 3600 + 60;

/** The clocks of servers, by which sign-ins are dated, may be ahead of the database's by this much. */
const mostSkewSeconds = 60;

/** What a database clock that was ahead has left in the future. */
export interface Ahead {
  now: Date;
  /** Runs of future slots. */
  runs: number;
  /** The last of these slots. */
  lastSlot: Date | null;
  /** Whether anything else waits for that time: a lease, a reminder, a delivery, the start of a task. */
  waits: boolean;
}

/** Reports what lies ahead of the database's time. */
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
    db.$count(accessLease, isLateRevocation(now)),
    db.$count(token, gt(token.issuedAt, after(now, mostSkewSeconds))),
  ]);
  return {
    now,
    runs: slots?.runs ?? 0,
    lastSlot: slots?.lastSlot ?? null,
    waits: waits.some((count) => count > 0),
  };
}

/**
 * Ends the standstill after the database's clock was ahead: deletes the runs of future slots, so that they run when
 * they are due, and moves everything that waits for a later time to now. The effects of such a run stay, and the slot
 * repeats them when it is due. The daily summary of such a day is sent again, with other keys.
 *
 * @returns how many runs were deleted
 */
export async function rewind({ db, databaseClock, clock }: OperatorContext): Promise<number> {
  return db.transaction(async (tx) => {
    // Prevents claims meanwhile.
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
    await bringSignInsBack(tx, now);
    await audit(tx, {
      at: clock.now(),
      actor: "system",
      action: "schedule.rewound",
      data: { runs: deleted.length },
    });
    return deleted.length;
  });
}

/** The value `infinity` is excluded: no clock causes it, and the status reports it. */
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
 * Renames the keys of summaries of future slots (`<date>` becomes `<date>~<now>`). The next summary of that date then
 * uses new keys, because a recipient of the first one would ignore a second with the same key. The time of queueing
 * stays, because the summaries are found by it.
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

const isLateRevocation = (now: Date) =>
  and(eq(accessLease.state, "Revoking"), gt(accessLease.dueAt, after(now, longestBackoffSeconds)));

/**
 * Brings back sign-ins of a later time, in their order: the newest one of a user has their groups, so a later one without a
 * group would end nothing.
 */
async function bringSignInsBack(tx: Transaction, now: Date): Promise<void> {
  const at = sql`${now.toISOString()}::timestamptz`;
  await tx.execute(sql`
    update token set issued_at = ${at} - ahead.place * interval '1 millisecond' from (
      select jti, row_number() over (partition by user_name order by issued_at desc) as place
      from token where issued_at > ${at} + ${mostSkewSeconds} * interval '1 second') as ahead
    where token.jti = ahead.jti`);
}

/** Brings back durable work that waits for longer than any backoff or lease. */
async function bringWorkBack(tx: Transaction, now: Date): Promise<void> {
  const beyond = after(now, longestBackoffSeconds);
  await tx.update(delivery).set({ dueAt: now, leaseUntil: null }).where(gt(delivery.dueAt, beyond));
  // The tasks of such a reminder were brought back, too.
  const isReminder = and(isNotNull(delivery.topic), inArray(delivery.state, ["Queued", "Dead"]));
  await tx
    .update(delivery)
    .set({ occurredAt: now })
    .where(and(isReminder, isAhead(delivery.occurredAt, now)));
  const idle = sql`case when ${eq(flowStep.state, "Running")} then 'Pending' else ${flowStep.state} end`;
  await tx
    .update(flowStep)
    .set({ state: idle, dueAt: now, leaseUntil: null })
    .where(gt(flowStep.dueAt, beyond));
  await tx.update(accessLease).set({ dueAt: now, leaseUntil: null }).where(isLateRevocation(now));
}
