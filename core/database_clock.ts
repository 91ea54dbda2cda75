import { type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../drizzle/client.ts";
import { run } from "../drizzle/schema/index.ts";
import type { Clock } from "../platform/clock.ts";

/**
 * The time that decides about slots, leases and access: the database's, because all processes share it. It is SQL, so
 * that it is read where it is used, and an interface, so that a test can control it.
 */
export interface DatabaseClock {
  now(): SQL<Date>;
}

/** In milliseconds, so that a slot and the time it is compared with have the same precision. */
export const databaseClock: DatabaseClock = {
  now: () => sql<Date>`date_trunc('milliseconds', clock_timestamp())`.mapWith(run.slot),
};

/** The database's time plus this many seconds. */
export function fromNow(clock: DatabaseClock, seconds: number): SQL<Date> {
  return sql<Date>`${clock.now()} + ${seconds} * interval '1 second'`.mapWith(run.slot);
}

/** Reads the database's time once, as a clock that goes on from there. */
export async function readDatabaseTime(db: Database | Transaction): Promise<Clock> {
  const now = await databaseNow(db);
  const received = performance.now();
  return { now: () => new Date(now.getTime() + performance.now() - received) };
}

export async function databaseNow(db: Database | Transaction, clock = databaseClock): Promise<Date> {
  const [time] = await db.select({ now: clock.now() }).from(sql`(values (1)) as one`);
  return time!.now;
}
