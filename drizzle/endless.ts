import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

// Times written by anything other than svc: PostgreSQL's `infinity` and `-infinity`, and years that `parseInstant`
// rejects. They cannot be computed with, and JavaScript reads most of them as an invalid date.

const [firstYear, lastYear] = [100, 9999];

/** The values read in place of a time that is too early or too late, with four-digit years like every other time. */
const earliest = new Date("0001-01-01T00:00:00.000Z");
const latest = new Date(`${lastYear}-12-31T23:59:59.999Z`);

/** Why an item with such a time cannot be processed. */
export const endlessReason = `It has a time that is infinite, or outside the years ${firstYear} to ${lastYear}`;

/**
 * Uses ranges, so that PostgreSQL can use an index on the column. The result for null is null, which does not match.
 */
export function isEndlessColumn(column: PgColumn): SQL {
  const first = `0${firstYear}-01-01T00:00:00Z`;
  return sql`(${column} < ${first}::timestamptz or ${column} >= ${latest.toISOString()}::timestamptz)`;
}

/** Whether a time read from the database stands for one of those. */
export function isEndless(time: Date): boolean {
  // Also true for an invalid date.
  return !(time.getUTCFullYear() >= firstYear && time < latest);
}

/**
 * Parses a time written by PostgreSQL, directly or in JSON. Out-of-range times become the nearest representable one.
 */
export function readInstant(text: string): Date {
  const year = Number(/^(\d+)-/.exec(text)?.[1]);
  if (text.startsWith("-") || text.endsWith(" BC") || year < firstYear) return new Date(earliest);
  if (text === "infinity" || year > lastYear) return new Date(latest);
  return new Date(text);
}

/** PostgreSQL's value for a time that `readInstant` may have substituted; undefined for all others. */
export function boundOf(time: string): string | undefined {
  if (time === earliest.toISOString()) return "-infinity";
  return time === latest.toISOString() ? "infinity" : undefined;
}
