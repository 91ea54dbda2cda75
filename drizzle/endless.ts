import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

// Times that something else than svc has written: PostgreSQL's `infinity` and `-infinity`, and years that `parseInstant`
// refuses. Nothing can be computed of them, and JavaScript reads most of them as no time at all.

const [firstYear, lastYear] = [100, 9999];

/** What is read in place of a time that is too early, or too late: a text of four-digit years, as every other time. */
const earliest = new Date("0001-01-01T00:00:00.000Z");
const latest = new Date(`${lastYear}-12-31T23:59:59.999Z`);

/** Why nothing can be done about an item that has such a time. */
export const endlessReason = `A time of it is infinite, or in none of the years ${firstYear} to ${lastYear}`;

/** As ranges, so that an index of the column is used. Of null PostgreSQL says null: it is no such time. */
export function isEndlessColumn(column: PgColumn): SQL {
  const first = `0${firstYear}-01-01T00:00:00Z`;
  return sql`(${column} < ${first}::timestamptz or ${column} >= ${latest.toISOString()}::timestamptz)`;
}

/** Whether a time that was read from the database stands for one of those. */
export function isEndless(time: Date): boolean {
  // Not a number is neither.
  return !(time.getUTCFullYear() >= firstYear && time < latest);
}

/** The time of a text that PostgreSQL has written, by itself or in JSON. One of those times is the nearest that there is. */
export function readInstant(text: string): Date {
  const year = Number(/^(\d+)-/.exec(text)?.[1]);
  if (text.startsWith("-") || text.endsWith(" BC") || year < firstYear) return new Date(earliest);
  if (text === "infinity" || year > lastYear) return new Date(latest);
  return new Date(text);
}

/** Where a time that `readInstant` may have read in place of another one is, for PostgreSQL; undefined for all others. */
export function boundOf(time: string): string | undefined {
  if (time === earliest.toISOString()) return "-infinity";
  return time === latest.toISOString() ? "infinity" : undefined;
}
