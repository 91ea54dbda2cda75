import { InvalidInput } from "./errors.ts";

const iso = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * The time of an ISO 8601 text, which says its offset. From the year 100 on: of earlier ones, JavaScript reads what
 * PostgreSQL writes as years of our time, and 0001 comes back as 2001.
 *
 * @throws InvalidInput
 */
export function parseInstant(field: string, text: string): Date {
  const [, minute] = iso.exec(text) ?? [];
  const instant = new Date(text);
  // JavaScript counts on: 30 February is 2 March.
  const isThere = minute !== undefined && new Date(`${minute}Z`).toJSON()?.startsWith(minute);
  const year = instant.getUTCFullYear();
  if (!isThere || !(year >= 100 && year <= 9999))
    throw new InvalidInput(field, `The field ${field} must be a time such as 2026-11-20T12:00:00Z`);
  return instant;
}
