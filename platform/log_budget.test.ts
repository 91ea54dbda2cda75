import { expect, test } from "bun:test";
import { TestClock } from "../tests/support/clock.ts";
import { LogBudget } from "./log_budget.ts";

test("writes a limited number of lines per kind and minute, then a count of the rest", () => {
  const clock = new TestClock();
  const since = clock.now();
  const lines: unknown[] = [];
  const log = { warn: (fields: object, text: string) => lines.push({ ...fields, text }) };
  const budget = new LogBudget(log as never, clock, "requests", 60);
  const admitted = (kind: string, times: number) =>
    Array.from({ length: times }, () => budget.admits(kind, { kind })).filter(Boolean).length;
  expect(admitted("a", 200)).toBe(60);
  expect(admitted("b", 100)).toBe(60);
  clock.advance(10);
  expect(admitted("a", 20)).toBe(10);
  expect(lines).toEqual([]);
  clock.advance(50);
  expect(admitted("c", 1)).toBe(1);
  const text = "requests left out of the log";
  expect(lines.splice(0)).toEqual([
    { kind: "a", count: 150, since, text },
    { kind: "b", count: 40, since, text },
  ]);
  clock.advance(600);
  expect(admitted("a", 1)).toBe(1);
  expect(lines).toEqual([]);
  expect(admitted("a", 60)).toBe(59);
  budget.report();
  budget.report();
  expect(lines).toEqual([{ kind: "a", count: 1, since: clock.now(), text }]);
});
