import { expect, test } from "bun:test";
import { onceMore } from "./supervise.ts";

test("requests made during a run cause one more run, not one each", async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>();
  let runs = 0;
  const work = () => {
    runs += 1;
    return go;
  };
  const again = onceMore(work, () => {});
  for (let times = 0; times < 5; times++) again();
  expect(runs).toBe(1);
  resolve();
  await new Promise(setImmediate);
  expect(runs).toBe(2);
  again();
  expect(runs).toBe(3);
});

test("a failure is reported, and a new run may be requested", async () => {
  const causes: unknown[] = [];
  const again = onceMore(
    () => Promise.reject("no memory"),
    (cause) => causes.push(cause),
  );
  for (const times of [1, 2]) {
    again();
    await new Promise(setImmediate);
    expect(causes).toEqual(Array.from({ length: times }, () => "no memory"));
  }
});
