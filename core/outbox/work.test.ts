import { expect, test } from "bun:test";
import fc from "fast-check";
import { dueAgain, mostAttempts } from "./work.ts";

const at = new Date("2026-11-20T12:00:00Z");
const seconds = (attempts: number) => {
  const due = dueAgain(at, attempts);
  return due === null ? null : (due.getTime() - at.getTime()) / 1000;
};

test("backs off exponentially up to an hour, and after ten attempts waits for a person", () => {
  const waits = Array.from({ length: 11 }, (_, i) => seconds(i + 1));
  expect(waits).toEqual([30, 60, 120, 240, 480, 960, 1920, 3600, 3600, null, null]);
});

test("the backoff is between 30 s and an hour, and never decreases", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 - 1 }), (attempts) => {
      const wait = seconds(attempts);
      if (attempts >= mostAttempts) return wait === null;
      const before = attempts === 1 ? 30 : seconds(attempts - 1);
      return wait !== null && before !== null && wait >= before && wait >= 30 && wait <= 3600;
    }),
  );
});
