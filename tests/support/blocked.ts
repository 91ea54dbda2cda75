import { sql } from "drizzle-orm";
import type { Database } from "../../drizzle/client.ts";

/** Comes back when somebody, or so many, wait for a lock in this database. */
export async function somebodyWaits(db: Database, atLeast = 1): Promise<void> {
  const waiting = sql`select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  while ((await db.execute(waiting)).length < atLeast);
}
