import { beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { run, scheduledTask } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { daily, everySeconds, scheduleOf } from "../../tests/support/domain/schedule.ts";
import { type Claim, claimDue, claimNow, lockTask } from "./claims.ts";
import { pauseTask, resumeTask } from "./operate.ts";
import { finishRun } from "./runs.ts";
import type { TaskDefinition } from "./tasks.ts";

const client = useDatabase(25);
let clock: TestClock;
beforeEach(async () => {
  await client.db.execute(sql`truncate run, run_fault, scheduled_task, audit_log`);
  clock = new TestClock(new Date("2026-12-01T12:00:10.000Z"));
});

const hourly = everySeconds("hourly", 3600);
const as = (owner: string) => scheduleOf(client.db, clock, owner);
/** The caller gives its idea of the time, as workers do. Without one, the task is locked first. */
const claim = async (task: TaskDefinition, owner = "a", at: Date | undefined = clock.now()) => {
  const claimed = await claimDue(as(owner), task, at);
  return "claim" in claimed ? claimed.claim : claimed.lookAgain.toISOString().slice(11, 19);
};
const claimed = async (task: TaskDefinition, owner = "a") => (await claim(task, owner)) as Claim;
const finish = (one: Claim) => finishRun(as(one.owner), one, { faults: [] });
const rows = () => client.db.select().from(run).orderBy(run.task, run.slot);
const slots = async () =>
  (await rows()).map(({ slot, state }) => `${slot.toISOString().slice(5, 16)} ${state}`);
const hours = (number: number) => clock.advance(number * 3600);

describe("a slot", () => {
  test("before a worker first sees the task is not run", async () => {
    expect(await claim(hourly)).toBe("13:00:00");
    hours(1);
    expect(await claimed(hourly)).toMatchObject({ slot: new Date("2026-12-01T13:00:00Z"), attempt: 1 });
  });

  test("is claimed by one of twenty competing workers, in every round", async () => {
    await claim(hourly);
    for (let round = 0; round < 10; round += 1) {
      hours(1);
      // Some lock the task first, like a caller without an idea of the time.
      const idea = (i: number) => (i % 4 === 0 ? undefined : clock.now());
      const racers = Array.from({ length: 20 }, (_, i) => claimDue(as(`worker ${i}`), hourly, idea(i)));
      const winners = (await Promise.all(racers)).flatMap((one) => ("claim" in one ? [one.claim] : []));
      expect(winners).toHaveLength(1);
      expect(await finish(winners[0]!)).toBe(true);
    }
    expect((await rows()).map(({ attempt, result }) => [attempt, result])).toEqual(
      Array.from({ length: 10 }, () => [1, {}]),
    );
  });

  test("is checked again within a second, since its worker may give it back", async () => {
    await claim(hourly);
    hours(1);
    await claimed(hourly);
    expect(await claim(hourly, "b")).toBe("13:00:11");
    clock.advance(29);
    expect(await claim(everySeconds("short", 5), "b")).toBe("13:00:40");
  });

  test("waits for an older run to end, and is checked every second", async () => {
    await claim(hourly);
    const eager = await claimNow(as("b"), hourly);
    expect(await claim(hourly)).toBe("12:00:11");
    await finish(eager);
    expect(await claim(hourly)).toBe("13:00:00");
  });

  test("that was not run is covered by the latest slot, which records it", async () => {
    await claim(hourly);
    hours(1);
    await finish(await claimed(hourly));
    hours(5);
    await finish(await claimed(hourly));
    expect(await slots()).toEqual(["12-01T13:00 Done", "12-01T18:00 Done"]);
    expect((await rows())[1]?.result).toEqual({
      missed_slots: { count: 4, from: "2026-12-01T14:00:00.000Z" },
    });
  });

  test("of a daily task runs within six hours, and is then recorded as missed", async () => {
    const summary = daily("summary", "18:00:00");
    await claim(summary);
    hours(6 + 24 + 24 + 5);
    await finish(await claimed(summary));
    hours(24 + 2);
    expect(await claim(summary)).toBe("18:00:00");
    expect(await slots()).toEqual([
      "12-01T18:00 Missed",
      "12-02T18:00 Missed",
      "12-03T18:00 Done",
      "12-04T18:00 Missed",
    ]);
  });

  test("of a daily task is recorded as missed however many there are", async () => {
    const summary = daily("summary", "18:00:00");
    await claim(summary);
    const days = 12_000;
    hours(24 * days + 8);
    await finish(await claimed(summary));
    expect(await client.db.$count(run, eq(run.state, "Missed"))).toBe(days);
  });

  test("does not run again when the clock goes back", async () => {
    await claim(hourly);
    hours(2);
    await finish(await claimed(hourly));
    hours(-1);
    expect(typeof (await claim(hourly))).toBe("string");
    hours(1);
    expect(typeof (await claim(hourly))).toBe("string");
  });
});

describe("the run of a dead worker", () => {
  test("is taken over by one of twenty workers when its lease ends", async () => {
    await claim(hourly);
    hours(1);
    await claimed(hourly, "dead");
    clock.advance(29);
    expect(typeof (await claim(hourly, "b"))).toBe("string");
    clock.advance(1);
    const racers = Array.from({ length: 20 }, (_, i) => claim(hourly, `worker ${i}`));
    const winners = (await Promise.all(racers)).filter((one) => typeof one === "object");
    expect(winners).toMatchObject([{ slot: new Date("2026-12-01T13:00:00Z"), attempt: 2 }]);
    expect(await rows()).toMatchObject([{ attempt: 2, owner: winners[0]!.owner, state: "Running" }]);
  });

  test("fails once five workers have died of it", async () => {
    await claim(hourly);
    hours(1);
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      expect((await claimed(hourly)).attempt).toBe(attempt);
      clock.advance(31);
    }
    expect(typeof (await claim(hourly))).toBe("string");
    expect(await rows()).toMatchObject([{ state: "Failed", error: "Its worker died 5 times" }]);
  });

  test("of a daily task fails after six hours", async () => {
    const summary = daily("summary", "18:00:00");
    await claim(summary);
    hours(6);
    await claimed(summary);
    hours(6.1);
    expect(typeof (await claim(summary))).toBe("string");
    expect(await rows()).toMatchObject([
      { state: "Failed", error: "Its worker died, and no other worker was available within six hours" },
    ]);
  });
});

describe("running a task by hand", () => {
  test("creates a run besides those of its slots", async () => {
    await claim(hourly);
    const eager = await claimNow(as("a"), hourly);
    expect(eager).toMatchObject({ trigger: "eager", slot: clock.now() });
    await finish(eager);
    hours(1);
    expect(await claimed(hourly)).toMatchObject({ slot: new Date("2026-12-01T13:00:00Z") });
    expect((await rows()).map(({ result }) => result)).toEqual([{}, {}]);
  });

  test("leaves the preceding slot to be claimed", async () => {
    await claim(hourly);
    hours(1.5);
    await finish(await claimNow(as("a"), hourly));
    expect(await claimed(hourly)).toMatchObject({ slot: new Date("2026-12-01T13:00:00Z") });
  });

  test("is refused while the task is running, and takes over from a dead worker", async () => {
    await claimNow(as("a"), hourly);
    await expect(claimNow(as("b"), hourly)).rejects.toThrow("hourly is already running");
    clock.advance(30);
    expect(await claimNow(as("b"), hourly)).toMatchObject({ attempt: 2, trigger: "eager" });
  });

  test("starts a new run if the previous one has failed because its workers died", async () => {
    for (const owner of ["a", "b", "c", "d", "e"]) {
      await claimNow(as(owner), hourly);
      clock.advance(31);
    }
    expect(await claimNow(as("f"), hourly)).toMatchObject({ attempt: 1, trigger: "eager" });
    expect((await rows()).map(({ state, attempt }) => [state, attempt])).toEqual([
      ["Failed", 5],
      ["Running", 1],
    ]);
  });
});

test("a paused task runs only by hand, and the slots of its pause are skipped", async () => {
  const name = "term-sync" as const;
  const sync = everySeconds(name, 3600);
  const context = { ...as("a"), clock };
  await claim(sync);
  hours(1);
  await finish(await claimed(sync));
  expect(await pauseTask(context, name)).toBe(true);
  expect(await pauseTask(context, name)).toBe(false);
  hours(3);
  expect(await claim(sync)).toBe("17:00:00");
  await finish(await claimNow(as("a"), sync));
  expect(await resumeTask(context, name)).toBe(true);
  expect(await resumeTask(context, name)).toBe(false);
  expect(await claim(sync)).toBe("17:00:00");
  hours(1);
  expect((await claimed(sync)).slot).toEqual(new Date("2026-12-01T17:00:00Z"));
  expect((await rows()).at(-1)?.result).toEqual({});
  const told = await client.db.execute(sql`select action, subject from audit_log order by id`);
  expect([...told]).toEqual([
    { action: "scheduled_task.paused", subject: name },
    { action: "scheduled_task.resumed", subject: name },
  ]);
});

test("a dead worker's run of a paused task is checked in time for its resumption", async () => {
  const name = "term-sync" as const;
  const sync = everySeconds(name, 3600);
  const context = { ...as("b"), clock };
  await claimNow(as("a"), sync);
  await pauseTask(context, name);
  clock.advance(60);
  expect(await claim(sync, "b")).toBe("12:01:40");
  await resumeTask(context, name);
  expect(await claimed(sync, "b")).toMatchObject({ owner: "b", attempt: 2 });
});

test.each(["with an idea of the time", "without one"])(
  "a claim does not wait for an uncommitted pause, and respects it; %s",
  async (idea) => {
    const ask = () => claimDue(as("a"), hourly, idea === "without one" ? undefined : clock.now());
    await ask();
    hours(1);
    await client.db.transaction(async (tx) => {
      await tx.update(scheduledTask).set({ pausedAt: clock.now() });
      expect(await ask()).toEqual({ lookAgain: after(clock.now(), 1) });
    });
    expect(await ask()).toEqual({ lookAgain: new Date("2026-12-01T14:00:00.000Z") });
    expect(await rows()).toEqual([]);
  },
);

test("PostgreSQL ends the claim of a frozen process, so that others can claim the task", async () => {
  for (const lockMode of ["wait", "skip"] as const) {
    const limits = await client.db.transaction(async (tx) => {
      expect(await lockTask(tx, as("a"), "hourly", lockMode)).toBe(true);
      return tx.execute(sql`select current_setting('idle_in_transaction_session_timeout') as idle`);
    });
    expect([...limits]).toEqual([{ idle: "30s" }]);
  }
});

test("the database refuses two simultaneous runs of a task", async () => {
  const eager = await claimNow(as("a"), hourly);
  const values = { ...(await rows())[0]!, slot: new Date(0) };
  await expect(client.db.insert(run).values(values).execute()).rejects.toMatchObject({
    cause: { constraint_name: "run_one_running_idx" },
  });
  await finish(eager);
  expect(await client.db.$count(run, eq(run.state, "Done"))).toBe(1);
});
