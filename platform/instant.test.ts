import { expect, test } from "bun:test";
import fc from "fast-check";
import { InvalidInput } from "./errors.ts";
import { parseInstant } from "./instant.ts";

test("parses JavaScript's ISO strings, with any offset", () => {
  const range = {
    noInvalidDate: true,
    min: new Date("0100-01-02T00:00Z"),
    max: new Date("9999-12-30T00:00Z"),
  };
  fc.assert(
    fc.property(fc.date(range), fc.integer({ min: -14, max: 14 }), (at, hours) => {
      expect(parseInstant("at", at.toISOString())).toEqual(at);
      const local = new Date(at.getTime() + hours * 3_600_000).toISOString().slice(0, -1);
      const offset = `${hours < 0 ? "-" : "+"}${String(Math.abs(hours)).padStart(2, "0")}:00`;
      if (/^\d/.test(local)) expect(parseInstant("at", local + offset)).toEqual(at);
    }),
  );
});

test.each([
  "",
  "now",
  "2026-11-20",
  "2026-11-20T12:00:00",
  "2026-11-20 12:00:00Z",
  "20261120T120000Z",
  "2026-02-29T00:00:00Z",
  "2026-02-30T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-11-20T24:00:00Z",
  "2026-11-20T12:60:00Z",
  "2016-12-31T23:59:60Z",
  "2026-11-20T12:00:00+99:00",
  "2026-11-20T12:00:00Zx",
  "0000-01-01T00:00:00Z",
  "0001-01-01T00:00:00Z",
  "0099-12-31T23:59:59Z",
  "0100-01-01T00:00:00+01:00",
  "9999-12-31T23:59:59-01:00",
  "+012026-01-01T00:00:00Z",
])("rejects %p", (text) => {
  expect(() => parseInstant("at", text)).toThrow(InvalidInput);
});

test("accepts a leap day", () => {
  expect(parseInstant("at", "2028-02-29T00:00:00Z")).toEqual(new Date("2028-02-29T00:00:00Z"));
});
