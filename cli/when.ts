import { UsageError } from "./errors.ts";
import { printable } from "./text.ts";

/** `2026-11-20 14:05` in the local time zone. */
export function localTime(instant: Date | string): string {
  const date = new Date(instant);
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** The units in which times are typed and shown, in seconds. */
export const units = [
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
] as const;
const typedUnits: Record<string, number> = { w: 604_800, ...Object.fromEntries(units) };

/** `2026-11-20 14:05:00+01:00` in the local time zone, as `--at` and `--due` also take it. */
export function zonedTime(date: Date): string {
  const two = (number: number) => String(Math.floor(number)).padStart(2, "0");
  const offset = -date.getTimezoneOffset();
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.abs(offset) / 60)}:${two(Math.abs(offset) % 60)}`;
  return `${localTime(date)}:${two(date.getSeconds())}${zone}`;
}

/**
 * A time in the past as people type it: how long ago (`10m`, `1h30m`, `2d`, also with `ago`), a time of day, a day, or a
 * time with or without a zone.
 *
 * @param mayBeYesterday whether a time of day that is still to come is that of yesterday, as for a list; what is written must
 * not be a day off
 * @throws UsageError that names the option
 */
export function parseWhen(option: string, text: string, now: Date, mayBeYesterday = true): Date {
  const word = text.trim();
  const passed = ago(word, now);
  let found = passed ? [passed] : (timeOfDay(word, now) ?? calendar(word));
  const isValid = (at: Date) => !Number.isNaN(at.getTime()) && at.getUTCFullYear() >= 1970;
  if (found === undefined || !found.every(isValid)) {
    throw new UsageError(
      `${option}: "${printable(text, 60)}" is not a time such as 10m, 2h, 14:05, 2026-11-20 or 2026-11-20T14:05:00Z`,
    );
  }
  const isToCome = (times: readonly Date[]) => times.length > 0 && times.every((at) => at > now);
  const yesterday = timeOfDay(word, now, -1);
  if (yesterday && isToCome(found)) {
    if (!mayBeYesterday) {
      const [at = now] = yesterday;
      throw new UsageError(
        `${option}: ${word} is still to come, it is ${localTime(now).slice(11)}; for yesterday: ${option} "${localTime(at)}"`,
      );
    }
    found = yesterday;
  }
  if (isToCome(found)) throw new UsageError(`${option}: ${printable(text, 60)} is in the future`);
  return onlyOne(
    option,
    word,
    found.filter((at) => at <= now),
  );
}

/** The end of a range: a day is included, so its end is the next one's start; everything else is as in `parseWhen`. */
export function parseUntil(option: string, text: string, now: Date): Date {
  const at = parseWhen(option, text, now);
  return isDay(text.trim()) ? nextDay(at) : at;
}

/** Whether a text is a day, such as `2026-11-20`. */
export const isDay = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text);

/** The seconds in `90s`, `30m`, `1h30m` or `1d`; undefined for another text. */
export function parseSpan(text: string): number | undefined {
  if (!/^(?:\d{1,6}[wdhms])+$/.test(text)) return undefined;
  let seconds = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)([wdhms])/g))
    seconds += Number(count) * typedUnits[unit!]!;
  return seconds;
}

function ago(text: string, now: Date): Date | undefined {
  if (text === "now") return now;
  const seconds = parseSpan(text.replace(/^-| ago$/g, ""));
  return seconds === undefined ? undefined : new Date(now.getTime() - seconds * 1000);
}

/** A time of day, today or some days later. */
function timeOfDay(text: string, now: Date, days = 0): Date[] | undefined {
  const [, hour, minute, second = "0"] = /^(\d\d?):(\d\d)(?::(\d\d))?$/.exec(text) ?? [];
  if (hour === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const day = [now.getFullYear(), now.getMonth(), now.getDate() + days] as const;
  return localInstants(...day, Number(hour), Number(minute), Number(second));
}

const iso = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;

function calendar(text: string): Date[] | undefined {
  const [, year, month, day, hour, minute, second = "0", zone] = iso.exec(text) ?? [];
  if (year === undefined) return undefined;
  // JavaScript normalises dates: 30 February becomes 2 March.
  const isDay = new Date(`${year}-${month}-${day}T00:00Z`).toJSON()?.startsWith(`${year}-${month}-${day}`);
  if (!isDay || Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59 || Number(second) > 59) return undefined;
  if (zone !== undefined) return [new Date(text.replace(" ", "T"))];
  const date = [Number(year), Number(month) - 1, Number(day)] as const;
  if (hour === undefined) return [new Date(...date)];
  return localInstants(...date, Number(hour), Number(minute), Number(second));
}

/** The instants with this local time: two when the clocks are put back, and none when they are put forward. */
function localInstants(
  ...[year, month, day, hour, minute, second]: [number, number, number, number, number, number]
) {
  const utc = Date.UTC(year, month, day, hour, minute, second);
  const offsets = [-86_400_000, 86_400_000].map((other) => new Date(utc + other).getTimezoneOffset());
  const instants = [...new Set(offsets)].map((offset) => new Date(utc + offset * 60_000));
  return instants
    .filter((at) => at.getHours() === hour && at.getMinutes() === minute)
    .sort((a, b) => a.getTime() - b.getTime());
}

/** @throws UsageError if a change of the clocks makes the time ambiguous or skips it */
function onlyOne(option: string, text: string, found: readonly Date[]): Date {
  const [at, other] = found;
  const shown = printable(text, 60);
  if (at === undefined)
    throw new UsageError(
      `${option}: there is no ${shown} in your time zone: the clocks are put forward then`,
    );
  if (other !== undefined)
    throw new UsageError(
      `${option}: ${shown} comes twice, because the clocks are put back: give "${zonedTime(at)}" or "${zonedTime(other)}"`,
    );
  return at;
}

/**
 * A time in the future as people type it: in how long (`2h`, `1d`), the next such time of day, a day (its end), or a time
 * with or without a zone.
 *
 * @throws UsageError that names the option
 */
export function parseDue(option: string, text: string, now: Date): Date {
  const word = text.trim().replace(/^(?:\+|in )/, "");
  const from = later(word, now);
  let found = from ? [from] : (timeOfDay(word, now) ?? calendar(word));
  const isValid = (at: Date) => !Number.isNaN(at.getTime()) && at.getUTCFullYear() <= 9999;
  if (found === undefined || !found.every(isValid)) {
    throw new UsageError(
      `${option}: "${printable(text, 60)}" is not a time such as 2h, 3d, 17:00, 2026-11-20 or 2026-11-20T14:05:00Z`,
    );
  }
  // A day is due at its end.
  if (isDay(word)) found = found.map((day) => new Date(nextDay(day).getTime() - 1000));
  const isPast = (times: readonly Date[]) => times.length > 0 && times.every((at) => at < now);
  if (isPast(found)) found = timeOfDay(word, now, 1) ?? found;
  if (isPast(found)) throw new UsageError(`${option}: ${printable(text, 60)} is in the past`);
  return onlyOne(
    option,
    word,
    found.filter((at) => at >= now),
  );
}

function nextDay(day: Date): Date {
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1);
}

function later(text: string, now: Date): Date | undefined {
  const past = text === "now" || /ago|^-/.test(text) ? undefined : ago(text, now);
  return past && new Date(2 * now.getTime() - past.getTime());
}
