import { describe, expect, spyOn, test } from "bun:test";
import { DatabaseTime, inTime, pause } from "./time.ts";

const never = new AbortController().signal;
/** Milliseconds that the time is away from what the database would say now, which is `ahead` of this machine's. */
const errorOf = (time: DatabaseTime, ahead: number) =>
  Math.abs(time.now().getTime() - (performance.timeOrigin + performance.now() + ahead));
/** An answer that was under way for so long, said in the middle or at its end. */
const observe = (time: DatabaseTime, ahead: number, took: number, saidAtEnd = false) => {
  const received = performance.now();
  const said = performance.timeOrigin + received + ahead - (saidAtEnd ? 0 : took / 2);
  time.observe(new Date(said), received - took, received);
};

describe("the database's time", () => {
  test("is not known before it was asked for", () => {
    expect(() => new DatabaseTime().now()).toThrow("not known yet");
  });

  test("goes on from what was said, whatever this machine's clock says", () => {
    const time = new DatabaseTime();
    observe(time, 300_000, 2);
    expect(errorOf(time, 300_000)).toBeLessThan(50);
  });

  test("a slow answer says less than a quick one", () => {
    const time = new DatabaseTime();
    observe(time, 0, 2);
    observe(time, 0, 400, true);
    expect(errorOf(time, 0)).toBeLessThan(50);
    const slowFirst = new DatabaseTime();
    observe(slowFirst, 0, 400, true);
    observe(slowFirst, 0, 2);
    expect(errorOf(slowFirst, 0)).toBeLessThan(50);
  });

  test("is believed at once when somebody has set its clock", () => {
    const time = new DatabaseTime();
    observe(time, 0, 2);
    observe(time, -60_000, 3);
    expect(errorOf(time, -60_000)).toBeLessThan(50);
  });
});

test("sleeps until that time has come, and never less", async () => {
  const time = new DatabaseTime();
  observe(time, 5000, 0);
  for (const milliseconds of [1, 7.5, 30]) {
    const at = new Date(time.now().getTime() + milliseconds);
    await time.sleepUntil(at, never);
    expect(time.now().getTime()).toBeGreaterThanOrEqual(at.getTime());
  }
});

test("wakes when it is told to", async () => {
  const time = new DatabaseTime();
  observe(time, 0, 0);
  const stop = new AbortController();
  const sleeping = time.sleepUntil(new Date(time.now().getTime() + 3_600_000), stop.signal);
  stop.abort();
  await sleeping;
  await pause(3_600_000, stop.signal);
});

test("wakes when somebody has set the database's clock back", async () => {
  const time = new DatabaseTime();
  observe(time, 86_400_000, 2);
  const sleeping = time.sleepUntil(new Date(time.now().getTime() + 7000), never);
  observe(time, 0, 2);
  await sleeping;
  expect(errorOf(time, 0)).toBeLessThan(50);
}, 20_000);

test("wakes now and then, since an operator may have changed what is due", async () => {
  const time = new DatabaseTime();
  observe(time, 0, 0);
  const now = performance.now.bind(performance);
  let later = 0;
  using _ = spyOn(performance, "now").mockImplementation(() => now() + later);
  const sleeping = time.sleepUntil(new Date(time.now().getTime() + 3_600_000), never);
  later = 30_000;
  await sleeping;
}, 20_000);

test("what does not answer in time is given up", async () => {
  expect(await inTime(1000, Promise.resolve(7))).toBe(7);
  await expect(inTime(1, new Promise(() => {}))).rejects.toThrow("no answer");
});

test("the time in which this process stood still does not count", async () => {
  const answer = inTime(
    2000,
    Bun.sleep(10).then(() => Bun.sleep(10)),
  );
  // Meanwhile the first half is over, and the time is up before the second one has begun.
  Bun.sleepSync(2100);
  await answer;
});
