import { beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { openDatabase } from "../../drizzle/client.ts";
import { run, scheduledTask } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { noteStatements } from "../../tests/support/database/statements.ts";
import { everySeconds, scheduleOf, steppingClock } from "../../tests/support/domain/schedule.ts";
import { attemptClaim, type Claim, claimDue, claimNow } from "./claims.ts";
import { usuallyWanted } from "./decide.ts";
import { finishRun } from "./runs.ts";

const client = useDatabase(4);
let clock: TestClock;
beforeEach(async () => {
  await client.db.execute(sql`truncate run, run_fault, scheduled_task`);
  clock = new TestClock(new Date("2026-12-01T13:00:00.000Z"));
  await known({ since: hour(12) });
});

const task = everySeconds("hourly", 3600);
const hour = (number: number) => new Date(Date.UTC(2026, 11, 1, number));
const as = (owner: string) => scheduleOf(client.db, clock, owner);
const known = (values: { since: Date; pausedAt?: Date }) =>
  client.db
    .insert(scheduledTask)
    .values({ name: task.name, ...values })
    .onConflictDoUpdate({ target: scheduledTask.name, set: values });
const ran = (slot: Date) =>
  client.db.insert(run).values({
    task: task.name,
    slot,
    state: "Done",
    trigger: "schedule",
    owner: "z",
    startedAt: slot,
    finishedAt: slot,
  });
/** Tries to claim the slot at 13:00. */
const attempt = (context = as("a")) => attemptClaim(context, task.name, usuallyWanted(task, "UTC", hour(13)));
const claimed = async () => (await attempt())?.claim !== undefined;
const rows = () => client.db.select().from(run);

test("a due slot is claimed if the one before it has run", async () => {
  await known({ since: hour(3) });
  await ran(hour(12));
  const claim = { task: task.name, slot: hour(13), owner: "a", attempt: 1, trigger: "schedule" } as const;
  expect(await attempt()).toEqual({
    claim,
    seen: { now: hour(13), since: hour(3), pausedAt: null, last: hour(12), running: null },
  });
  const { task: _, ...values } = claim;
  const [, row] = await rows();
  expect(row).toMatchObject({ ...values, state: "Running", startedAt: hour(13), result: {} });
  expect(row?.leaseUntil).toEqual(after(hour(13), 30));
  expect(await finishRun(as("a"), claim, { faults: [] })).toBe(true);
});

test("a time that PostgreSQL stores in microseconds still matches", async () => {
  await client.db.execute(sql`update scheduled_task set since = since - interval '3 hours 0.0001 seconds'`);
  const { claim } = (await claimDue(as("a"), task, clock.now())) as { claim: Claim };
  expect(claim.slot).toEqual(hour(13));
  expect((await rows())[0]?.result).toEqual({ missed_slots: { count: 4, from: hour(9).toISOString() } });
});

describe("claims nothing", () => {
  test("for a task that no worker has seen", async () => {
    await client.db.delete(scheduledTask);
    expect(await attempt()).toBeUndefined();
  });

  test("too early, and returns the database's time", async () => {
    clock.advance(-0.001);
    expect(await attempt()).toMatchObject({ claim: undefined, seen: { now: clock.now() } });
    clock.advance(0.001);
    expect(await claimed()).toBe(true);
  });

  test("when the next slot starts meanwhile", async () => {
    const stepping = await steppingClock(client.db, hour(13), 3600);
    expect(await attempt({ ...as("a"), databaseClock: stepping })).toMatchObject({ claim: undefined });
    expect(await rows()).toEqual([]);
  });

  test("for a paused task", async () => {
    await known({ since: hour(12), pausedAt: hour(12) });
    expect(await claimed()).toBe(false);
  });

  test("for a slot before the task was known, or was resumed", async () => {
    await ran(hour(12));
    await known({ since: hour(13) });
    expect(await claimed()).toBe(false);
    await known({ since: after(hour(13), -0.001) });
    expect(await claimed()).toBe(true);
  });

  test("when the slot before it was not run", async () => {
    await known({ since: after(hour(12), -0.001) });
    expect(await claimed()).toBe(false);
    await ran(hour(11));
    expect(await attempt()).toMatchObject({ claim: undefined, seen: { last: hour(11) } });
    await ran(hour(12));
    expect(await claimed()).toBe(true);
  });

  test("when a later slot was claimed, since the clock has gone back", async () => {
    await ran(hour(12));
    await ran(hour(14));
    expect(await claimed()).toBe(false);
  });

  test("while another run of the task is in progress", async () => {
    await claimNow(as("b"), task);
    expect(await attempt()).toMatchObject({
      claim: undefined,
      seen: { running: { slot: hour(13), leaseUntil: after(hour(13), 30), attempt: 1, trigger: "eager" } },
    });
  });

  test("at the very instant at which the task was run by hand", async () => {
    await finishRun(as("b"), await claimNow(as("b"), task), { faults: [] });
    expect(await claimed()).toBe(false);
    expect(await rows()).toMatchObject([{ trigger: "eager", state: "Done" }]);
  });
});

test("claiming the usual slot, finding it claimed and ending a run each take one statement", async () => {
  const own = openDatabase(client.url, 2);
  const asked = noteStatements(own.db);
  const context = scheduleOf(own.db, clock, "a");
  await client.db.transaction(async (tx) => {
    await tx.select().from(scheduledTask).for("update");
    expect(await claimDue(context, task, clock.now())).toEqual({ lookAgain: after(hour(13), 1) });
  });
  expect(asked.splice(0)).toHaveLength(1);
  const { claim } = (await claimDue(context, task, clock.now())) as { claim: Claim };
  expect(asked.splice(0)).toHaveLength(1);
  expect(await claimDue(context, task, clock.now())).toEqual({ lookAgain: after(hour(13), 1) });
  expect(asked.splice(0)).toHaveLength(1);
  expect(await finishRun(context, claim, { faults: [] })).toBe(true);
  expect(asked.splice(0)).toHaveLength(1);
  await own.close();
});

test("tasks that are due at the same moment are claimed in one statement, each once", async () => {
  const own = openDatabase(client.url, 2);
  const context = scheduleOf(own.db, clock, "a");
  const tasks = ["one", "two", "three"].map((name) => everySeconds(name, 3600));
  for (const { name } of tasks) await client.db.insert(scheduledTask).values({ name, since: hour(12) });
  const asked = noteStatements(own.db);
  const all = await Promise.all(tasks.map((one) => claimDue(context, one, clock.now())));
  expect(all.map((one) => "claim" in one && one.claim.task)).toEqual(["one", "two", "three"]);
  expect(asked).toHaveLength(1);
  const twice = await Promise.all([attempt(context), attempt(context)]);
  expect(twice.filter((one) => one?.claim)).toHaveLength(1);
  await own.close();
});

test("an attempt that PostgreSQL refuses leaves the others of its statement alone", async () => {
  const context = as("a");
  const refused = attemptClaim(context, "\0", usuallyWanted(task, "UTC", hour(13)));
  const [bad, ours] = await Promise.allSettled([refused, attempt(context)]);
  expect(bad.status).toBe("rejected");
  expect(ours).toMatchObject({ status: "fulfilled", value: { claim: { task: task.name } } });
});

describe("a claim never waits", () => {
  /** Attempts a claim while a transaction that has done this work is open. */
  const during = (work: Parameters<typeof client.db.transaction<void>>[0]) =>
    client.db.transaction(async (tx) => {
      await work(tx);
      return (await attempt())!;
    });

  test("for a worker that is claiming or pausing the task", async () => {
    const held = await during(async (tx) => {
      await tx.select().from(scheduledTask).for("update");
    });
    const pausing = await during(async (tx) => {
      await tx.update(scheduledTask).set({ since: clock.now() });
    });
    expect([held.claim, pausing.claim]).toEqual([undefined, undefined]);
  });

  test("for a worker that is ending a run of it", async () => {
    await claimNow(as("b"), task);
    const ending = await during(async (tx) => {
      await tx.update(run).set({ state: "Done", leaseUntil: null, finishedAt: clock.now() });
    });
    expect(ending).toMatchObject({ claim: undefined, seen: { running: { trigger: "eager" } } });
  });
});
