import { InvalidInput } from "./errors.ts";

const iso = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** Whether PostgreSQL reads it as we write it. */
export function isStorable(instant: Date): boolean {
  const year = instant.getUTCFullYear();
  return year >= 100 && year <= 9999;
}

/**
 * Parses an ISO 8601 time with an offset. Rejects years before 100: JavaScript reads what PostgreSQL writes for them as
 * modern years, and 0001 comes back as 2001.
 *
 * @throws InvalidInput
 */
export function parseInstant(field: string, text: string): Date {
  const [, minute] = iso.exec(text) ?? [];
  const instant = new Date(text);
  // JavaScript normalises dates: 30 February becomes 2 March.
  const isThere = minute !== undefined && new Date(`${minute}Z`).toJSON()?.startsWith(minute);
  if (!isThere || !isStorable(instant))
    throw new InvalidInput(field, `The field ${field} must be a time such as 2026-11-20T12:00:00Z`);
  return instant;
}
