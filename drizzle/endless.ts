import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

// Times that something else than svc has written: PostgreSQL's `infinity` and `-infinity`, and years that `parseInstant`
// refuses. Nothing can be computed of them, and JavaScript reads most of them as no time at all.

const [firstYear, lastYear] = [100, 9999];

/** Why nothing can be done about an item that has such a time. */
export const endlessReason = `A time of it is infinite, or in none of the years ${firstYear} to ${lastYear}`;

/** As ranges, so that an index of the column is used. Of null PostgreSQL says null: it is no such time. */
export function isEndlessColumn(column: PgColumn): SQL {
  const [first, end] = [`0${firstYear}-01-01T00:00:00Z`, `${lastYear + 1}-01-01T00:00:00Z`];
  return sql`(${column} < ${first}::timestamptz or ${column} >= ${end}::timestamptz)`;
}

/** Whether a time that was read from the database is one of those that JavaScript can tell. */
export function isEndless(time: Date): boolean {
  return Number.isNaN(time.getTime()) || time.getUTCFullYear() > lastYear;
}
