import { beforeEach, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { run } from "../../drizzle/schema/index.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { claimNow } from "./claims.ts";
import { beat } from "./heartbeat.ts";
import { pauseTask, resumeTask } from "./operate.ts";
import { finishRun, putOff } from "./runs.ts";
import { laggards, scheduleStatus } from "./status.ts";
import { findTask } from "./tasks.ts";

const client = useDatabase(6);
let clock: TestClock;
beforeEach(async () => {
  await client.db.execute(sql`truncate run, run_fault, scheduled_task, worker`);
  clock = new TestClock(new Date("2026-12-01T12:00:10.000Z"));
});

const context = () => scheduleOf(client.db, clock, "a");
async function ran(name: string, error?: string): Promise<void> {
  await finishRun(context(), await claimNow(context(), findTask(name)!), { error, faults: [] });
  clock.advance(60);
}
async function problems(): Promise<string[]> {
  await beat(context(), { host: "here", pid: 1 });
  return laggards(await scheduleStatus(context()));
}
const failingOf = async (name: string) =>
  (await scheduleStatus(context())).tasks.find((task) => task.name === name)!.failing;

test("a task that keeps failing is a problem since its first failure, until it succeeds", async () => {
  await ran("term-sync");
  expect(await failingOf("term-sync")).toBeNull();
  await ran("term-sync", "no source answered");
  const since = new Date("2026-12-01T12:01:10.000Z");
  expect(await failingOf("term-sync")).toEqual({ since, runs: 1 });
  // The next slot is soon.
  expect(await problems()).toEqual([]);
  await ran("term-sync", "no source answered");
  expect(await failingOf("term-sync")).toEqual({ since, runs: 2 });
  expect(await problems()).toEqual(["term-sync has failed 2 times since 2026-12-01T12:01:10.000Z"]);
  await ran("term-sync");
  expect(await failingOf("term-sync")).toBeNull();
  expect(await problems()).toEqual([]);
});

test("a plugin that fails for all of its items is a problem since the first such run", async () => {
  const ranWith = async (failing_plugins?: Record<string, number>, error?: string) => {
    const result = { done: 1, skipped: 0, failed: 3, ...(failing_plugins && { failing_plugins }) };
    const claim = await claimNow(context(), findTask("term-sync")!);
    await finishRun(context(), claim, error ? { error, faults: [] } : { result, faults: [] });
    clock.advance(60);
  };
  const statusOf = async () =>
    (await scheduleStatus(context())).tasks.find((task) => task.name === "term-sync")!;
  await ranWith({ wiki: 3 });
  await ranWith();
  expect(await statusOf()).toMatchObject({ failingPlugins: [], failedShare: 0.75 });
  await ranWith({ wiki: 3, notes: 1 });
  const since = new Date("2026-12-01T12:02:10.000Z");
  expect((await statusOf()).failingPlugins).toMatchObject([
    { plugin: "wiki", since, runs: 1, items: 3 },
    { plugin: "notes", since, runs: 1, items: 1 },
  ]);
  // The next slot is soon.
  expect(await problems()).toEqual([]);
  // Says nothing about the plugins.
  await ranWith(undefined, "It took longer than 600 s");
  await ranWith({ wiki: 2 });
  expect((await statusOf()).failingPlugins).toEqual([{ plugin: "wiki", since, runs: 2, items: 2 }]);
  expect(await problems()).toEqual(["the plugin wiki fails in term-sync since 2026-12-01T12:02:10.000Z"]);
});

test("a daily task is a problem at its first failure: the next slot is a day away", async () => {
  await ran("incident-daily-summary", "It took longer than 1800 s");
  expect(await problems()).toEqual(["incident-daily-summary has failed once since 2026-12-01T12:00:10.000Z"]);
  await ran("incident-daily-summary");
  expect(await problems()).toEqual([]);
});

test("a run that keeps being postponed is a problem since its slot, even during a retry", async () => {
  const slot = clock.now();
  const claim = await claimNow(context(), findTask("term-sync")!);
  const reason = "locked";
  await putOff(context(), claim, { seconds: 1, reason, faults: [] });
  expect(await problems()).toEqual([]);
  await client.db.update(run).set({ result: { retries: { count: 6, attempt: 6, reason } } });
  expect(await problems()).toEqual([`term-sync has failed 6 times since ${slot.toISOString()}`]);
});

test("a paused task is not a problem", async () => {
  await ran("document-term-sync", "no text");
  await pauseTask({ ...context(), clock }, "document-term-sync");
  expect(await problems()).toEqual([]);
  await resumeTask({ ...context(), clock }, "document-term-sync");
  expect(await problems()).toEqual(["document-term-sync has failed once since 2026-12-01T12:00:10.000Z"]);
});
