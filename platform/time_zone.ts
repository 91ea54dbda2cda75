import { InvalidInput } from "./errors.ts";

/** Creating one takes far longer than using it. By the names that `isTimeZone` knows. */
const formats = new Map<string, Intl.DateTimeFormat>();

/** @throws RangeError */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  const made = new Intl.DateTimeFormat("sv", { timeZone, dateStyle: "short", timeStyle: "medium" });
  formats.set(timeZone, made);
  return made;
}

/** A time in this zone, to the second: `2026-11-27 14:05:09`. */
export function localText(at: Date, timeZone: string): string {
  return formatOf(timeZone).format(at);
}

/** Whether this process knows the zone. Only for names from `parseTimeZone`, because it remembers them. */
export function isTimeZone(name: string): boolean {
  try {
    return formatOf(name) !== undefined;
  } catch {
    return false;
  }
}

/** The usual spelling of a zone of the IANA database, for a name in any case. @throws InvalidInput */
export function parseTimeZone(field: string, name: string): string {
  try {
    // Without the zones that are only an offset, which have no summer time.
    if (/^[A-Za-z]/.test(name))
      return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw new InvalidInput(field, "There is no such time zone: choose one such as Europe/Berlin");
}
