import { expect, test } from "bun:test";
import { TestClock } from "../tests/support/clock.ts";
import { RateLimit } from "./rate_limit.ts";

test("allows a burst, then a rate per minute, for each key separately", () => {
  const clock = new TestClock();
  const limit = new RateLimit(clock, 60, 3);
  expect([1, 2, 3, 4, 5].map(() => limit.take("a"))).toEqual([0, 0, 0, 1, 1]);
  expect(limit.take("b")).toBe(0);
  clock.advance(1);
  expect([limit.take("a"), limit.take("a")]).toEqual([0, 1]);
  clock.advance(3600);
  expect([1, 2, 3, 4].map(() => limit.take("a"))).toEqual([0, 0, 0, 1]);
});

test("returns the seconds until the next free attempt", () => {
  const clock = new TestClock();
  const limit = new RateLimit(clock, 2, 1);
  limit.take("a");
  expect(limit.take("a")).toBe(30);
  clock.advance(29);
  expect(limit.take("a")).toBe(1);
  clock.advance(1);
  expect(limit.take("a")).toBe(0);
});

test("a clock that goes back neither adds nor removes attempts", () => {
  const clock = new TestClock();
  const limit = new RateLimit(clock, 60, 1);
  limit.take("a");
  clock.advance(-3600);
  expect(limit.take("a")).toBe(1);
  clock.advance(1);
  expect(limit.take("a")).toBe(0);
});

test("keeps a limited number of keys, and forgets the one idle longest", () => {
  const limit = new RateLimit(new TestClock(), 1, 1, 2);
  limit.take("a");
  limit.take("b");
  limit.take("a");
  limit.take("c");
  expect(limit.take("a")).toBeGreaterThan(0);
  expect(limit.take("b")).toBe(0);
});
