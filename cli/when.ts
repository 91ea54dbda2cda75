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

/**
 * A time in the past as people type it: how long ago (`10m`, `1h30m`, `2d`, also with `ago`), a time of day (today's, or
 * yesterday's if that is still to come), a day, or a time with or without a zone.
 *
 * @throws UsageError that names the option
 */
export function parseWhen(option: string, text: string, now: Date): Date {
  const word = text.trim();
  const at = ago(word, now) ?? timeOfDay(word, now) ?? calendar(word);
  if (at === undefined || Number.isNaN(at.getTime()) || at.getUTCFullYear() < 1970) {
    throw new UsageError(
      `${option}: "${printable(text, 60)}" is not a time such as 10m, 2h, 14:05, 2026-11-20 or 2026-11-20T14:05:00Z`,
    );
  }
  if (at > now) throw new UsageError(`${option}: ${printable(text, 60)} is in the future`);
  return at;
}

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

function timeOfDay(text: string, now: Date): Date | undefined {
  const [, hour, minute, second = "0"] = /^(\d\d?):(\d\d)(?::(\d\d))?$/.exec(text) ?? [];
  if (hour === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const at = new Date(now);
  at.setHours(Number(hour), Number(minute), Number(second), 0);
  if (at > now) at.setDate(at.getDate() - 1);
  return at;
}

const iso = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;

function calendar(text: string): Date | undefined {
  const [, year, month, day, hour, minute, second = "0", zone] = iso.exec(text) ?? [];
  if (year === undefined) return undefined;
  // JavaScript normalises dates: 30 February becomes 2 March.
  const isDay = new Date(`${year}-${month}-${day}T00:00Z`).toJSON()?.startsWith(`${year}-${month}-${day}`);
  if (!isDay || Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59 || Number(second) > 59) return undefined;
  if (zone !== undefined) return new Date(text.replace(" ", "T"));
  return new Date(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour ?? 0),
    Number(minute ?? 0),
    Number(second),
  );
}

/**
 * A time in the future as people type it: in how long (`2h`, `1d`), the next such time of day, a day (its end), or a time
 * with or without a zone.
 *
 * @throws UsageError that names the option
 */
export function parseDue(option: string, text: string, now: Date): Date {
  const word = text.trim().replace(/^(?:\+|in )/, "");
  const isDay = /^\d{4}-\d\d-\d\d$/.test(word);
  const at = later(word, now) ?? nextTimeOfDay(word, now) ?? calendar(isDay ? `${word} 23:59:59` : word);
  if (at === undefined || Number.isNaN(at.getTime()) || at.getUTCFullYear() > 9999) {
    throw new UsageError(
      `${option}: "${printable(text, 60)}" is not a time such as 2h, 3d, 17:00, 2026-11-20 or 2026-11-20T14:05:00Z`,
    );
  }
  if (at < now) throw new UsageError(`${option}: ${printable(text, 60)} is in the past`);
  return at;
}

function later(text: string, now: Date): Date | undefined {
  const past = text === "now" || /ago|^-/.test(text) ? undefined : ago(text, now);
  return past && new Date(2 * now.getTime() - past.getTime());
}

function nextTimeOfDay(text: string, now: Date): Date | undefined {
  const at = timeOfDay(text, now);
  if (at === undefined) return undefined;
  if (at < now) at.setDate(at.getDate() + 1);
  return at;
}
