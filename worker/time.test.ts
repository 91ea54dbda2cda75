import { describe, expect, spyOn, test } from "bun:test";
import { DatabaseTime, inTime, pause } from "./time.ts";

const never = new AbortController().signal;
/** The error in milliseconds, for a database whose clock is `ahead` of this machine's. */
const errorOf = (time: DatabaseTime, ahead: number) => {
  const from = performance.timeOrigin + performance.now() + ahead;
  const now = time.now().getTime();
  const to = performance.timeOrigin + performance.now() + ahead;
  return Math.max(from - now, now - to, 0);
};
/** An answer that took `took` milliseconds, read from the clock half-way or at the end. */
const observe = (time: DatabaseTime, ahead: number, took: number, saidAtEnd = false) => {
  const received = performance.now();
  const said = performance.timeOrigin + received + ahead - (saidAtEnd ? 0 : took / 2);
  time.observe(new Date(said), received - took, received);
};

describe("the database's time", () => {
  test("is unknown before the first observation", () => {
    expect(() => new DatabaseTime().now()).toThrow("not known yet");
  });

  test("continues from the last observation, whatever this machine's clock says", () => {
    const time = new DatabaseTime();
    observe(time, 300_000, 2);
    expect(errorOf(time, 300_000)).toBeLessThan(50);
  });

  test("does not let a slow answer replace a quick one", () => {
    const time = new DatabaseTime();
    observe(time, 0, 2);
    observe(time, 0, 400, true);
    expect(errorOf(time, 0)).toBeLessThan(50);
    const slowFirst = new DatabaseTime();
    observe(slowFirst, 0, 400, true);
    observe(slowFirst, 0, 2);
    expect(errorOf(slowFirst, 0)).toBeLessThan(50);
  });

  test("is corrected at once when the database's clock has been set", () => {
    const time = new DatabaseTime();
    observe(time, 0, 2);
    observe(time, -60_000, 3);
    expect(errorOf(time, -60_000)).toBeLessThan(50);
  });
});

test("sleeps until the given time, and never less", async () => {
  const time = new DatabaseTime();
  observe(time, 5000, 0);
  for (const milliseconds of [1, 7.5, 30]) {
    const at = new Date(time.now().getTime() + milliseconds);
    await time.sleepUntil(at, never);
    expect(time.now().getTime()).toBeGreaterThanOrEqual(at.getTime());
  }
});

test("wakes when aborted", async () => {
  const time = new DatabaseTime();
  observe(time, 0, 0);
  const stop = new AbortController();
  const sleeping = time.sleepUntil(new Date(time.now().getTime() + 3_600_000), stop.signal);
  stop.abort();
  await sleeping;
  await pause(3_600_000, stop.signal);
});

test("wakes when the database's clock is set back", async () => {
  const time = new DatabaseTime();
  observe(time, 86_400_000, 2);
  // No time passes, so that nothing else wakes it.
  using _ = spyOn(performance, "now").mockReturnValue(performance.now());
  const sleeping = time.sleepUntil(new Date(time.now().getTime() + 7000), never);
  observe(time, 0, 2);
  await sleeping;
  expect(errorOf(time, 0)).toBeLessThan(50);
});

test("wakes periodically, since an operator may have changed what is due", async () => {
  const time = new DatabaseTime();
  observe(time, 0, 0);
  const now = performance.now.bind(performance);
  let later = 0;
  using _ = spyOn(performance, "now").mockImplementation(() => now() + later);
  const sleeping = time.sleepUntil(new Date(time.now().getTime() + 3_600_000), never);
  later = 30_000;
  await sleeping;
});

test("gives up on a promise that does not settle in time", async () => {
  expect(await inTime(1000, Promise.resolve(7))).toBe(7);
  await expect(inTime(1, new Promise(() => {}))).rejects.toThrow("no answer");
});

test("a timeout excludes time in which the process was suspended", async () => {
  const answer = inTime(
    2000,
    Bun.sleep(10).then(() => Bun.sleep(10)),
  );
  // This outlasts the first sleep and the whole timeout before the second sleep has begun.
  Bun.sleepSync(2100);
  await answer;
});
