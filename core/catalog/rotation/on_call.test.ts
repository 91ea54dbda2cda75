import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { onCall } from "./on_call.ts";

const hour = 3_600_000;

const rotation = fc.record({
  startsAt: fc.date({ noInvalidDate: true, min: new Date("1970-01-01"), max: new Date("2100-01-01") }),
  shiftHours: fc.integer({ min: 1, max: 8760 }),
  members: fc.integer({ min: 1, max: 200 }),
});
const turn = fc.integer({ min: 0, max: 10_000 });
const later = (at: Date, milliseconds: number) => new Date(at.getTime() + milliseconds);

test("the n-th turn is the n-th member's, from its first millisecond to its last", () => {
  fc.assert(
    fc.property(rotation, turn, fc.double({ min: 0, max: 1, noNaN: true }), (turns, n, part) => {
      const length = turns.shiftHours * hour;
      const begins = later(turns.startsAt, n * length);
      const expected = n % turns.members;
      for (const within of [0, Math.floor(part * (length - 1)), length - 1])
        expect(onCall(turns, later(begins, within))).toBe(expected);
      expect(onCall(turns, later(begins, length))).toBe((n + 1) % turns.members);
    }),
  );
});

test("before the first turn nobody is on call", () => {
  fc.assert(
    fc.property(rotation, fc.integer({ min: 1, max: 1e12 }), (turns, before) => {
      expect(onCall(turns, later(turns.startsAt, -before))).toBeUndefined();
    }),
  );
});

test("every member has the same share of a round, and rounds repeat unchanged", () => {
  fc.assert(
    fc.property(rotation, turn, ({ members, ...rest }, first) => {
      const turns = { ...rest, members };
      const at = (n: number) => onCall(turns, later(turns.startsAt, n * turns.shiftHours * hour));
      const round = Array.from({ length: members }, (_, i) => at(first + i));
      expect(new Set(round).size).toBe(members);
      expect(at(first + members)).toBe(round[0]);
    }),
    { numRuns: 50 },
  );
});

describe("for example", () => {
  const startsAt = new Date("2026-11-02T09:00:00Z");
  const week = { startsAt, shiftHours: 168, members: 3 };
  test.each([
    ["2026-11-02T08:59:59.999Z", undefined],
    ["2026-11-02T09:00:00.000Z", 0],
    ["2026-11-09T08:59:59.999Z", 0],
    ["2026-11-09T09:00:00.000Z", 1],
    ["2026-11-16T09:00:00.000Z", 2],
    ["2026-11-23T09:00:00.000Z", 0],
  ])("at %s it is %p", (at, position) => expect(onCall(week, new Date(at))).toBe(position));

  test("an empty rotation has nobody on call", () =>
    expect(onCall({ ...week, members: 0 }, startsAt)).toBeUndefined());
});
