import { afterEach, describe, expect, test } from "bun:test";
import { parseDue, parseUntil, parseWhen, zonedTime } from "./when.ts";

const zone = process.env.TZ;
afterEach(() => {
  process.env.TZ = zone ?? "UTC";
});

/** What a person in Berlin means by a time that they type at `now`. */
const meant = (parse: (now: Date) => Date, now: string, tz = "Europe/Berlin") => {
  process.env.TZ = tz;
  try {
    return parse(new Date(now)).toISOString();
  } catch (error) {
    return (error as Error).message;
  }
};
const at = (text: string, now: string, tz?: string) =>
  meant((date) => parseWhen("--at", text, date, false), now, tz);
const since = (text: string, now: string) => meant((date) => parseWhen("--since", text, date), now);
const until = (text: string, now: string) => meant((date) => parseUntil("--until", text, date), now);
const due = (text: string, now: string) => meant((date) => parseDue("--due", text, date), now);

describe("a time of day", () => {
  const noon = "2026-11-20T12:00:00+01:00";

  test("that has passed is today's", () => {
    expect(at("11:59", noon)).toBe("2026-11-20T10:59:00.000Z");
    expect(at("12:00", noon)).toBe("2026-11-20T11:00:00.000Z");
    expect(at("12:00", noon, "Asia/Kolkata")).toBe("2026-11-20T06:30:00.000Z");
  });

  test("that is to come is refused for what is written, and named for yesterday", () => {
    expect(at("12:05", noon)).toBe(
      '--at: 12:05 is still to come, it is 12:00; for yesterday: --at "2026-11-19 12:05"',
    );
    expect(at("23:50", "2026-11-20T00:10:00+01:00")).toContain('for yesterday: --at "2026-11-19 23:50"');
    expect(at("2026-11-19 12:05", noon)).toBe("2026-11-19T11:05:00.000Z");
    expect(at("2026-11-20 12:05", noon)).toBe("--at: 2026-11-20 12:05 is in the future");
  });

  test("that is to come is yesterday's for what is listed, and that has passed is tomorrow's for what is due", () => {
    expect(since("12:05", noon)).toBe("2026-11-19T11:05:00.000Z");
    expect(due("11:55", noon)).toBe("2026-11-21T10:55:00.000Z");
    expect(due("12:05", noon)).toBe("2026-11-20T11:05:00.000Z");
  });
});

test("a day that ends a range is included, and only a day", () => {
  const noon = "2026-11-20T12:00:00+01:00";
  expect(until("2026-11-19", noon)).toBe("2026-11-19T23:00:00.000Z");
  expect(until(" 2026-11-20 ", noon)).toBe("2026-11-20T23:00:00.000Z");
  expect(until("2026-11-21", noon)).toBe("--until: 2026-11-21 is in the future");
  for (const text of ["2026-11-19 14:00", "11:59", "2h"]) expect(until(text, noon)).toBe(since(text, noon));
});

describe("summer time", () => {
  test("skips a time when it begins", () => {
    const after = "2026-03-29T05:00:00+02:00";
    const message = "--at: there is no 02:30 in your time zone: the clocks are put forward then";
    expect(at("02:30", after)).toBe(message);
    expect(at("2026-03-29 02:30", after)).toContain("there is no 2026-03-29 02:30");
    expect(at("03:00", after)).toBe("2026-03-29T01:00:00.000Z");
    expect(due("02:30", "2026-03-28T12:00:00+01:00")).toBe(message.replace("--at", "--due"));
  });

  test("makes a time ambiguous when it ends, if both have passed", () => {
    const first = "2026-10-25T02:45:00+02:00";
    expect(at("02:30", first)).toBe("2026-10-25T00:30:00.000Z");
    const message =
      '02:30 comes twice, because the clocks are put back: give "2026-10-25 02:30:00+02:00" or "2026-10-25 02:30:00+01:00"';
    expect(at("02:30", "2026-10-25T02:45:00+01:00")).toBe(`--at: ${message}`);
    expect(at("2026-10-25 02:30:00+01:00", "2026-10-25T12:00:00+01:00")).toBe("2026-10-25T01:30:00.000Z");
    expect(due("02:30", first)).toBe("2026-10-25T01:30:00.000Z");
    expect(due("02:30", "2026-10-24T12:00:00+02:00")).toBe(`--due: ${message}`);
  });

  test("does not move the end of a day, nor how long ago something was", () => {
    expect(due("2026-10-25", "2026-10-24T12:00:00+02:00")).toBe("2026-10-25T22:59:59.000Z");
    expect(until("2026-10-25", "2026-10-26T12:00:00+01:00")).toBe("2026-10-25T23:00:00.000Z");
    expect(since("2026-10-25", "2026-10-26T12:00:00+01:00")).toBe("2026-10-24T22:00:00.000Z");
    expect(at("1d", "2026-10-25T12:00:00+01:00")).toBe("2026-10-24T11:00:00.000Z");
  });
});

test("a time is shown with its zone", () => {
  const shown = (tz: string) => {
    process.env.TZ = tz;
    return zonedTime(new Date("2026-11-20T12:00:05Z"));
  };
  expect(["UTC", "Asia/Kolkata", "America/St_Johns"].map(shown)).toEqual([
    "2026-11-20 12:00:05+00:00",
    "2026-11-20 17:30:05+05:30",
    "2026-11-20 08:30:05-03:30",
  ]);
});
