import { beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { idempotencyKey, run, runFault, worker } from "../../drizzle/schema/index.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { claimDue, claimNow } from "./claims.ts";
import { cleanUp } from "./clean.ts";
import { explain } from "./explain.ts";
import { beat, signOff } from "./heartbeat.ts";
import { pauseTask, resumeTask } from "./operate.ts";
import { finishRun, putOff } from "./runs.ts";
import { laggards, recentFaults, scheduleStatus } from "./status.ts";
import { findTask } from "./tasks.ts";

const client = useDatabase(6);
let clock: TestClock;
beforeEach(async () => {
  await client.db.execute(sql`truncate run, run_fault, scheduled_task, worker, idempotency_key`);
  clock = new TestClock(new Date("2026-12-01T12:00:10.000Z"));
});

const sync = findTask("term-sync")!;
const here = { host: "here", pid: 1 };
const as = (owner = "a") => scheduleOf(client.db, clock, owner);
const ofSync = async () => (await scheduleStatus(as())).tasks.find(({ name }) => name === "term-sync")!;
const claimed = async () => {
  const answer = await claimDue(as(), sync);
  if (!("claim" in answer)) throw new Error("nothing was due");
  return answer.claim;
};

describe("a task is late", () => {
  test("by how long its slot has waited for a worker, not while one is running it", async () => {
    expect(await ofSync()).toMatchObject({ state: "unknown", lagSeconds: 0, last: null, due: null });
    await claimDue(as(), sync);
    clock.advance(3590 - 1);
    expect(await ofSync()).toMatchObject({ state: "waiting", lagSeconds: 0, due: null });
    clock.advance(3);
    expect(await ofSync()).toMatchObject({ lagSeconds: 2, due: new Date("2026-12-01T13:00:00Z") });
    await claimed();
    clock.advance(29);
    expect(await ofSync()).toMatchObject({ state: "running", lagSeconds: 0, due: null });
  });

  test("since the first slot that was not run", async () => {
    await claimDue(as(), sync);
    clock.advance(2 * 3600);
    expect(await ofSync()).toMatchObject({ lagSeconds: 3610, due: new Date("2026-12-01T13:00:00Z") });
  });

  test("since its worker's lease ended", async () => {
    await claimNow(as(), sync);
    clock.advance(40);
    expect(await ofSync()).toMatchObject({ state: "running", lagSeconds: 10 });
  });

  test("never while it is paused", async () => {
    await claimDue(as(), sync);
    await pauseTask({ ...as(), clock }, "term-sync");
    clock.advance(2 * 3600);
    expect(await ofSync()).toMatchObject({ state: "paused", lagSeconds: 0, due: null });
  });

  test("after its worker died, only once it is resumed", async () => {
    await claimNow(as(), sync);
    await pauseTask({ ...as(), clock }, "term-sync");
    expect(await ofSync()).toMatchObject({ state: "running", lagSeconds: 0 });
    clock.advance(3600);
    expect(await ofSync()).toMatchObject({ state: "paused", lagSeconds: 0, due: null });
    await resumeTask({ ...as(), clock }, "term-sync");
    clock.advance(20);
    expect(await ofSync()).toMatchObject({ state: "running", lagSeconds: 20 });
    expect(await claimed()).toMatchObject({ attempt: 2 });
  });
});

test("the schedule keeps up while a worker lives and no task is over a minute late", async () => {
  const late = async () => laggards(await scheduleStatus(as()));
  expect(await late()).toEqual(["no worker was seen in the last 30 s"]);
  await beat(as(), here);
  expect(await late()).toEqual([]);
  await claimDue(as(), sync);
  clock.advance(31);
  expect(await late()).toEqual(["no worker was seen in the last 30 s"]);
  clock.advance(3590 - 31 + 60);
  await beat(as(), here);
  expect(await late()).toEqual([]);
  clock.advance(1);
  expect(await late()).toEqual(["term-sync is 61 s late"]);
  await signOff(as());
  expect(await client.db.$count(worker)).toBe(0);
});

test("a task that ran for a future time does not count as keeping up", async () => {
  const laggardsNow = async () => laggards(await scheduleStatus(as()));
  await beat(as(), here);
  await claimDue(as(), sync);
  clock.advance(86_400);
  await finishRun(as(), await claimed(), { faults: [] });
  clock.advance(-80_000);
  await beat(as(), here);
  expect(await laggardsNow()).toEqual([
    "term-sync is stalled: the database's clock was ahead (svc scheduler rewind)",
  ]);
  clock.advance(80_000 - 60);
  await beat(as(), here);
  expect(await laggardsNow()).toEqual([]);
});

test("failed and missed runs count for a day", async () => {
  await finishRun(as(), await claimNow(as(), sync), { error: "no source answered", faults: [] });
  clock.advance(60);
  await finishRun(as(), await claimNow(as(), sync), { faults: [] });
  expect(await ofSync()).toMatchObject({ failures: 1, last: { state: "Done" } });
  clock.advance(24 * 3600 - 60);
  expect((await ofSync()).failures).toBe(0);
});

test("each item's last fault is shown for a day, those of the last run always", async () => {
  const runs: Date[] = [];
  const ran = async (...items: string[]) => {
    const claim = await claimNow(as(), sync);
    runs.push(claim.slot);
    await finishRun(as(), claim, { faults: items.map((item) => ({ item, reason: `no ${runs.length}` })) });
    clock.advance(3600);
  };
  const told = async () =>
    (await recentFaults(as(), await ofSync(), clock.now())).map(
      ({ slot, item, reason }) => `${runs.findIndex((one) => +one === +slot) + 1} ${item} ${reason}`,
    );
  await ran("c", "b", "a");
  await ran("a");
  await ran("d", "b");
  const all = ["3 b no 3", "3 d no 3", "2 a no 2", "1 c no 1"];
  expect(await told()).toEqual(all);
  clock.advance(21 * 3600);
  expect(await told()).toEqual(all);
  clock.advance(1);
  expect(await told()).toEqual(all.slice(0, 3));
  await cleanUp(as());
  expect(await client.db.$count(runFault)).toBe(3);
  clock.advance(20 * 86_400);
  await cleanUp(as());
  expect(await told()).toEqual(all.slice(0, 2));
  expect(await client.db.$count(runFault)).toBe(2);
});

test.each([
  ["Running", "term-sync"],
  ["Missed", "incident-daily-summary"],
] as const)(
  "the faults of the last finished run are kept and shown, even if a later run is %s",
  async (state, name) => {
    const task = findTask(name)!;
    const text = (at: Date | null) => at?.toISOString().slice(8, 19) ?? "-";
    const explained = async () => {
      const status = (await scheduleStatus(as())).tasks.find((one) => one.name === name)!;
      expect(status.last).toMatchObject({ state });
      const now = clock.now();
      const faults = await recentFaults(as(), status, now);
      return explain(status, { now, faults, timezone: "UTC" }, text).slice(-3, -1);
    };
    await finishRun(as(), await claimNow(as(), task), { faults: [{ item: "x", reason: "y" }] });
    for (const days of [4, 30]) {
      clock.advance(days * 86_400);
      await claimDue(as(), task);
      await cleanUp(as());
      expect(await explained()).toEqual(["Faults of the last finished run, at 01T12:00:10:", "  x: y"]);
    }
  },
);

test("a task without a finished run has no faults, and its missed runs are deleted after a month", async () => {
  const name = "incident-daily-summary" as const;
  for (const days of [0, 2, 31]) {
    clock.advance(days * 86_400);
    await claimDue(as(), findTask(name)!);
  }
  const oldest = async () => (await client.db.select().from(run).orderBy(run.slot))[0]!;
  expect(await oldest()).toMatchObject({ state: "Missed", slot: new Date("2026-12-01T18:00:00Z") });
  await cleanUp(as());
  expect((await oldest()).slot).toEqual(new Date("2026-12-04T18:00:00Z"));
  const status = (await scheduleStatus(as())).tasks.find((one) => one.name === name)!;
  expect(await recentFaults(as(), status, clock.now())).toEqual([]);
  const lines = explain(status, { now: clock.now(), faults: [], timezone: "UTC" }, String);
  expect(lines.slice(3, -1)).toEqual([expect.stringMatching(/^Last slot: .*, Missed$/)]);
});

test("explains what is due, and what the last run did", async () => {
  await claimDue(as(), sync);
  clock.advance(3 * 3600);
  const claim = await claimed();
  clock.advance(2);
  const result = { done: 3, skipped: 1, failed: 1 };
  await finishRun(as(), claim, { result, faults: [] });
  const faults = [
    { slot: claim.slot, item: "term 7", reason: "no text" },
    { slot: new Date("2026-12-01T11:00:00Z"), item: "term 8", reason: "no text" },
  ];
  const text = (at: Date | null) => at?.toISOString().slice(11, 19) ?? "-";
  const lines = explain(await ofSync(), { now: clock.now(), faults, timezone: "UTC" }, text);
  expect(lines).toEqual([
    "term-sync at 15:00:12",
    "Every 1:00:00 since the epoch; of missed slots, only the latest runs",
    "Nothing is due",
    "Last slot: 15:00:00, Done, 2.0 s",
    "  3 done, 1 skipped, 1 failed",
    "  Missed slots before it: 2, from 13:00:00",
    "  term 7: no text",
    "Faults of other items in the 24 h before it:",
    "  11:00:00 term 8: no text",
    "Next slot: 16:00:00",
  ]);
  const ofLast = { now: clock.now(), faults: faults.slice(0, 1), timezone: "UTC" };
  expect(explain(await ofSync(), ofLast, text)).toEqual(lines.toSpliced(7, 2));
});

test("explains that a run was postponed, and why", async () => {
  await claimDue(as(), sync);
  clock.advance(3600);
  await putOff(as(), await claimed(), { seconds: 8, reason: "PostgreSQL was away", faults: [] });
  const text = (at: Date | null) => at?.toISOString().slice(11, 19) ?? "-";
  const said = async () => explain(await ofSync(), { now: clock.now(), faults: [], timezone: "UTC" }, text);
  const reason = "  Postponed attempts: 1; last reason: PostgreSQL was away";
  expect(await said()).toContain(reason);
  expect(await said()).toContain("Postponed: any worker retries it at 13:00:18");
  clock.advance(8);
  const again = await claimed();
  expect((await said()).join()).toContain("Running: its worker's lease ends at 13:00:48");
  await finishRun(as(), again, { result: { done: 1, skipped: 0, failed: 0 }, faults: [] });
  expect(await said()).toContain(reason);
});

test("cleaning up keeps a month of runs, and each task's last slot and last finished run", async () => {
  await claimDue(as(), sync);
  await finishRun(as(), await claimNow(as(), sync), { faults: [] });
  clock.advance(3600);
  await finishRun(as(), await claimed(), { faults: [] });
  clock.advance(3600);
  await finishRun(as(), await claimed(), { faults: [{ item: "x", reason: "y" }] });
  await finishRun(as(), await claimNow(as(), sync), { faults: [] });
  await claimNow(as(), findTask("application-sync")!);
  await beat(as(), here);
  const key = {
    actor: "a",
    method: "POST",
    path: "/",
    requestHash: new Uint8Array(32),
    createdAt: clock.now(),
  };
  const lease = { leaseUntil: clock.now() };
  const expiresAt = (days: number) => new Date(clock.now().getTime() + days * 86_400_000);
  await client.db.insert(idempotencyKey).values([
    { ...key, ...lease, key: "old", expiresAt: expiresAt(29) },
    { ...key, ...lease, key: "new", expiresAt: expiresAt(31) },
  ]);
  await cleanUp(as());
  expect(await client.db.$count(run)).toBe(5);
  expect(await client.db.$count(worker)).toBe(1);
  clock.advance(30 * 86_400 + 60);
  await cleanUp(as());
  const left = await client.db.select().from(run).orderBy(run.task, run.slot);
  expect(left.map(({ task, state, slot }) => [task, state, slot.toISOString()])).toEqual([
    ["application-sync", "Running", "2026-12-01T14:00:10.000Z"],
    ["term-sync", "Done", "2026-12-01T14:00:00.000Z"],
    ["term-sync", "Done", "2026-12-01T14:00:10.000Z"],
  ]);
  expect(await client.db.$count(worker)).toBe(0);
  expect(await client.db.select({ key: idempotencyKey.key }).from(idempotencyKey)).toEqual([{ key: "new" }]);
});
