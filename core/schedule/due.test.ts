import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { dueSlots, nextSlot } from "./slots.ts";

const at = (text: string) => new Date(`2026-12-${text}:00.000Z`);

describe("a short task", () => {
  const due = (last: string, now: string) => dueSlots({ every: 3600 }, "UTC", at(last), at(now));

  test("nothing is due before the next slot", () => {
    expect(due("01T12:00", "01T12:59")).toEqual({ missed: [] });
  });
  test("runs its due slot", () => {
    expect(due("01T12:00", "01T13:00")).toEqual({ slot: at("01T13:00"), missed: [] });
  });
  test("runs only the latest slot, which covers those before it", () => {
    const skipped = { count: 4, from: at("01T13:00") };
    expect(due("01T12:00", "01T17:30")).toEqual({ slot: at("01T17:00"), skipped, missed: [] });
  });
  test("runs nothing when the clock has gone back", () => {
    expect(due("01T12:00", "01T09:00")).toEqual({ missed: [] });
  });
});

describe("a daily task", () => {
  const due = (last: string, now: string) => dueSlots({ daily: "18:00:00" }, "UTC", at(last), at(now));

  test("runs its slot for up to six hours", () => {
    expect(due("01T18:00", "02T17:59")).toEqual({ missed: [] });
    expect(due("01T18:00", "02T18:00")).toEqual({ slot: at("02T18:00"), missed: [] });
    expect(due("01T18:00", "03T00:00")).toEqual({ slot: at("02T18:00"), missed: [] });
  });
  test("misses its slot after six hours", () => {
    expect(due("01T18:00", "03T00:01")).toEqual({ missed: [at("02T18:00")] });
    expect(due("01T18:00", "05T19:00")).toEqual({
      slot: at("05T18:00"),
      missed: [at("02T18:00"), at("03T18:00"), at("04T18:00")],
    });
  });
});

test("every slot is run, covered or missed exactly once, however rarely a worker checks", () => {
  const timing = fc.constantFrom({ every: 3600 }, { daily: "02:30:00" });
  const looks = fc.array(fc.integer({ min: 1, max: 100 * 3_600_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(
      timing,
      fc.constantFrom("Europe/Berlin", "Australia/Lord_Howe"),
      looks,
      (rule, zone, steps) => {
        const begin = new Date("2026-03-20T00:00:00Z");
        let [last, now, seen] = [begin, begin, 0];
        for (const step of steps) {
          now = new Date(now.getTime() + step);
          // Several daily slots may be due.
          for (;;) {
            const { slot, skipped, missed } = dueSlots(rule, zone, last, now);
            seen += missed.length + (skipped?.count ?? 0) + (slot ? 1 : 0);
            last = slot ?? missed.at(-1) ?? last;
            if (!slot) break;
          }
        }
        let there = 0;
        for (let slot = nextSlot(rule, zone, begin); slot <= now; slot = nextSlot(rule, zone, slot))
          there += 1;
        expect(seen).toBe(there);
      },
    ),
  );
});
