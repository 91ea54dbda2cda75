import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

// PostgreSQL's times `infinity` and `-infinity`, which something else than svc may have written: nothing can be computed
// of them, and JavaScript reads them as no time at all.

/** Why nothing can be done about an item that has such a time. */
export const endlessReason = "A time of it is infinity or -infinity";

/** As a list, so that an index of the column is used. */
export function isEndlessColumn(column: PgColumn): SQL {
  return sql`${column} in ('infinity', '-infinity')`;
}

/** Whether a time that was read from the database is one that JavaScript has none for. */
export function isEndless(time: Date): boolean {
  return Number.isNaN(time.getTime());
}
