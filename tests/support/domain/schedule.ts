import { sql } from "drizzle-orm";
import type { DatabaseClock } from "../../../core/database_clock.ts";
import type { ScheduleContext } from "../../../core/schedule/claims.ts";
import type { TaskDefinition } from "../../../core/schedule/tasks.ts";
import type { Database } from "../../../drizzle/client.ts";
import { run } from "../../../drizzle/schema/index.ts";
import type { Clock } from "../../../platform/clock.ts";

/** A database clock that follows the test's clock. */
function databaseClockOf(clock: Clock): DatabaseClock {
  return { now: () => sql<Date>`${clock.now().toISOString()}::timestamptz`.mapWith(run.slot) };
}

/** A database clock that starts at `at` and advances by `seconds` each time PostgreSQL reads it. */
export async function steppingClock(db: Database, at: Date, seconds: number): Promise<DatabaseClock> {
  const name = sql.identifier(`clock_${crypto.randomUUID()}`);
  await db.execute(sql`create sequence ${name} minvalue 0 start 0`);
  const looks = sql`nextval(${`"${name.value}"`}::regclass)`;
  const now = sql<Date>`(${at.toISOString()}::timestamptz + ${looks} * ${seconds} * interval '1 second')`;
  return { now: () => now.mapWith(run.slot) };
}

/** A running database clock that starts at `at`. */
export function runningClock(at: Date): DatabaseClock & { set(to: Date): void } {
  let offset = 0;
  const set = (to: Date) => {
    offset = to.getTime() - Date.now();
  };
  set(at);
  const now = () =>
    sql<Date>`date_trunc('milliseconds', clock_timestamp() + ${offset} * interval '1 millisecond')`.mapWith(
      run.slot,
    );
  return { now, set };
}

/** A worker's schedule context with the test's clock. */
export function scheduleOf(db: Database, clock: Clock, owner: string, timezone = "UTC"): ScheduleContext {
  return { db, databaseClock: databaseClockOf(clock), config: { timezone }, owner, leaseSeconds: 30 };
}

/** A task that is due every `every` seconds, with the same timeout by default. */
export function everySeconds(name: string, every: number, timeoutSeconds = every): TaskDefinition {
  return { name, timing: { every }, showsTime: false, timeoutSeconds };
}

export function daily(name: string, time: string): TaskDefinition {
  return { name, timing: { daily: time }, showsTime: true, timeoutSeconds: 60 };
}
