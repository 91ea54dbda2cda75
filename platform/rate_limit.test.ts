import { expect, test } from "bun:test";
import { TestClock } from "../tests/support/clock.ts";
import { RateLimit } from "./rate_limit.ts";

test("gives a burst, then so many a minute, each key its own", () => {
  const clock = new TestClock();
  const limit = new RateLimit(clock, 60, 3);
  expect([1, 2, 3, 4, 5].map(() => limit.take("a"))).toEqual([0, 0, 0, 1, 1]);
  expect(limit.take("b")).toBe(0);
  clock.advance(1);
  expect([limit.take("a"), limit.take("a")]).toEqual([0, 1]);
  clock.advance(3600);
  expect([1, 2, 3, 4].map(() => limit.take("a"))).toEqual([0, 0, 0, 1]);
});

test("says when the next attempt is free", () => {
  const clock = new TestClock();
  const limit = new RateLimit(clock, 2, 1);
  limit.take("a");
  expect(limit.take("a")).toBe(30);
  clock.advance(29);
  expect(limit.take("a")).toBe(1);
  clock.advance(1);
  expect(limit.take("a")).toBe(0);
});

test("a clock that goes back gives nothing and takes nothing", () => {
  const clock = new TestClock();
  const limit = new RateLimit(clock, 60, 1);
  limit.take("a");
  clock.advance(-3600);
  expect(limit.take("a")).toBe(1);
  clock.advance(1);
  expect(limit.take("a")).toBe(0);
});

test("keeps no more keys than it may, and forgets the one that was idle longest", () => {
  const limit = new RateLimit(new TestClock(), 1, 1, 2);
  limit.take("a");
  limit.take("b");
  limit.take("a");
  limit.take("c");
  expect(limit.take("a")).toBeGreaterThan(0);
  expect(limit.take("b")).toBe(0);
});
