import { type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { run } from "../../drizzle/schema/index.ts";

/**
 * The time by which slots are claimed and leases end: the database's own, since it is the one that all workers share.
 * As SQL, so that it is read where it decides; an interface, so that a test can hold it.
 */
export interface DatabaseClock {
  now(): SQL<Date>;
}

/** In milliseconds, as everywhere: a slot and the time it is compared with have the same precision. */
export const databaseClock: DatabaseClock = {
  now: () => sql<Date>`date_trunc('milliseconds', clock_timestamp())`.mapWith(run.slot),
};

/** So many seconds behind the database's now. */
export function behindNow(clock: DatabaseClock, seconds: number): SQL<Date> {
  return sql<Date>`${clock.now()} + ${seconds} * interval '1 second'`.mapWith(run.slot);
}

export async function databaseNow(db: Database | Transaction, clock: DatabaseClock): Promise<Date> {
  const [time] = await db.select({ now: clock.now() }).from(sql`(values (1)) as one`);
  return time!.now;
}
