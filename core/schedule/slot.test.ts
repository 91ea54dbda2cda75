import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isTimeZone } from "../../platform/clock.ts";
import { nextSlot, previousSlot, slotsBetween } from "./slots.ts";
import type { Timing } from "./tasks.ts";

const at = (text: string) => new Date(text);

describe("a period in seconds, counted from the epoch", () => {
  const timing = { every: 300 };
  test.each([
    ["2026-12-01T12:00:00.000Z", "2026-12-01T12:00:00.000Z", "2026-12-01T12:05:00.000Z"],
    ["2026-12-01T12:04:59.999Z", "2026-12-01T12:00:00.000Z", "2026-12-01T12:05:00.000Z"],
    ["1969-12-31T23:59:59.000Z", "1969-12-31T23:55:00.000Z", "1970-01-01T00:00:00.000Z"],
  ])("%s: %s, then %s", (now, previous, next) => {
    expect(previousSlot(timing, "UTC", at(now)).toISOString()).toBe(previous);
    expect(nextSlot(timing, "UTC", at(now)).toISOString()).toBe(next);
  });
});

describe("a time of day when the clocks", () => {
  /** The slots of three days around that one. */
  const around = (daily: string, zone: string, day: string) => {
    const slots: string[] = [];
    let slot = at(`${day}T00:00:00Z`);
    slot = new Date(slot.getTime() - 24 * 3_600_000);
    while (slots.length < 3) {
      slot = nextSlot({ daily }, zone, slot);
      slots.push(slot.toISOString().slice(0, 16));
    }
    return slots;
  };

  test("go forward: a time in the gap becomes the first instant after it", () => {
    expect(around("02:30:00", "Europe/Berlin", "2026-03-29")).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ]);
    // The very beginning of the gap.
    expect(around("02:00:00", "Europe/Berlin", "2026-03-29")[1]).toBe("2026-03-29T01:00");
    // Only half an hour.
    expect(around("02:15:00", "Australia/Lord_Howe", "2026-10-03")).toEqual([
      "2026-10-02T15:45",
      "2026-10-03T15:30",
      "2026-10-04T15:15",
    ]);
  });

  test("go back: a time that occurs twice is the first one", () => {
    expect(around("01:30:00", "America/New_York", "2026-11-01")).toEqual([
      "2026-10-31T05:30",
      "2026-11-01T05:30",
      "2026-11-02T06:30",
    ]);
  });

  test("skip a day: its slot is the first instant of the next day", () => {
    expect(around("18:00:00", "Pacific/Apia", "2011-12-30")).toEqual([
      "2011-12-29T04:00",
      "2011-12-30T04:00",
      "2011-12-30T10:00",
    ]);
    expect(around("00:00:00", "Pacific/Apia", "2011-12-30")).toEqual([
      "2011-12-29T10:00",
      "2011-12-30T10:00",
      "2011-12-31T10:00",
    ]);
  });
});

const zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"];
const two = (number: number) => String(number).padStart(2, "0");
const time = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  .map(([hours, minutes]) => `${two(hours)}:${two(minutes)}:00`);
const timing: fc.Arbitrary<Timing> = fc.oneof(
  fc.record({ every: fc.constantFrom(1, 30, 300, 3600, 86_400) }),
  fc.record({ daily: fc.oneof(time, fc.constantFrom("00:00:00", "02:00:00", "02:30:00", "18:00:00")) }),
);
const instant = fc
  .integer({ min: Date.UTC(2005, 0, 1), max: Date.UTC(2037, 0, 1) })
  .map((milliseconds) => new Date(milliseconds));

test("previous and next surround every instant, with no slot between them", () => {
  fc.assert(
    fc.property(timing, fc.constantFrom(...zones), instant, (rule, zone, now) => {
      const [previous, next] = [previousSlot(rule, zone, now), nextSlot(rule, zone, now)];
      expect(previous <= now && now < next).toBe(true);
      expect(previousSlot(rule, zone, previous)).toEqual(previous);
      expect(nextSlot(rule, zone, previous)).toEqual(next);
      expect(previousSlot(rule, zone, next)).toEqual(next);
      expect(previousSlot(rule, zone, new Date(next.getTime() - 1))).toEqual(previous);
    }),
    { numRuns: 2000 },
  );
});

test("a year has one slot on each local day, at its time or after a gap", () => {
  fc.assert(
    fc.property(
      time,
      fc.constantFrom("Europe/Berlin", "America/New_York", "Australia/Lord_Howe"),
      fc.integer({ min: 2007, max: 2036 }),
      (daily, zone, year) => {
        const begin = at(`${year}-01-01T12:00:00Z`);
        const days: string[] = [];
        let odd = 0;
        for (let slot = begin; days.length < 365;) {
          slot = nextSlot({ daily }, zone, slot);
          const local = Temporal.Instant.fromEpochMilliseconds(slot.getTime()).toZonedDateTimeISO(zone);
          days.push(local.toPlainDate().toString());
          if (local.toPlainTime().toString() !== daily) odd += 1;
        }
        expect(new Set(days).size).toBe(365);
        expect(odd).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: 30 },
  );
});

test("a clock that goes back and forth finds no additional slots", () => {
  fc.assert(
    fc.property(
      timing,
      fc.constantFrom(...zones),
      fc.array(instant, { minLength: 2 }),
      (rule, zone, times) => {
        const forward = times.toSorted((a, b) => a.getTime() - b.getTime());
        const slots = (some: Date[]) => new Set(some.map((one) => previousSlot(rule, zone, one).getTime()));
        expect(slots(times)).toEqual(slots(forward.reverse()));
      },
    ),
  );
});

test("slotsBetween counts the slots one by one", () => {
  fc.assert(
    fc.property(
      timing,
      fc.constantFrom(...zones),
      instant,
      fc.integer({ min: 0, max: 3 * 86_400_000 }),
      (rule, zone, from, length) => {
        // For short periods only a few, because the test walks through them.
        const to = new Date(
          from.getTime() + ("every" in rule ? length % (20_000 * rule.every) : length * 10),
        );
        let [count, slot] = [0, nextSlot(rule, zone, from)];
        const first = slot <= to ? slot : undefined;
        for (; slot <= to; slot = nextSlot(rule, zone, slot)) count += 1;
        expect(slotsBetween(rule, zone, from, to)).toEqual({ count, first });
      },
    ),
  );
});

test("a time zone is an IANA name", () => {
  for (const zone of [...zones, "Etc/GMT+5"]) expect(isTimeZone(zone)).toBe(true);
  for (const zone of ["", "+02:00", "Europe/Nowhere", "18:00", "Berlin"])
    expect(isTimeZone(zone)).toBe(false);
});
