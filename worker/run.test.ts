import { beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { readConfig } from "../core/config.ts";
import { type Claim, claimDue, claimNow } from "../core/schedule/claims.ts";
import { forgiveAttempt } from "../core/schedule/runs.ts";
import { openDatabase } from "../drizzle/client.ts";
import { run, runFault, team } from "../drizzle/schema/index.ts";
import { after } from "../platform/clock.ts";
import { Unavailable } from "../platform/errors.ts";
import { createLog } from "../platform/log.ts";
import { TestClock } from "../tests/support/clock.ts";
import { somebodyWaits } from "../tests/support/database/blocked.ts";
import { useDatabase } from "../tests/support/database/database.ts";
import { everySeconds, scheduleOf } from "../tests/support/domain/schedule.ts";
import { until } from "../tests/support/process/until.ts";
import type { WorkerDeps } from "./deps.ts";
import { runClaim } from "./run.ts";
import type { ScheduledTask, TaskContext } from "./task.ts";
import { DatabaseTime } from "./time.ts";

const client = useDatabase(6);
let clock: TestClock;
let logged: string[];
let deps: WorkerDeps;
beforeEach(async () => {
  await client.db.execute(sql`truncate run, run_fault, scheduled_task, team cascade`);
  clock = new TestClock();
  logged = [];
  const time = new DatabaseTime();
  time.observe(clock.now(), performance.now(), performance.now());
  deps = {
    schedule: () => scheduleOf(client.db, clock, "a"),
    db: () => client.db,
    reopen: () => {},
    time,
    config: readConfig({}),
    log: createLog("trace", { write: (line: string) => logged.push(line) }),
    plugins: { ofType: () => [], find: () => undefined },
  };
});

const nothing = { done: 0, skipped: 0, failed: 0 };
const never = new AbortController().signal;

/** Claims a run of the task and executes it. */
async function doing(
  work: (context: TaskContext) => ReturnType<ScheduledTask["run"]>,
  { timeoutSeconds = 60, giveUp = never } = {},
) {
  const definition = everySeconds("tested", 3600, timeoutSeconds);
  const claim = await claimNow(deps.schedule(), definition);
  return runClaim(deps, { definition, task: { run: work } }, claim, giveUp);
}
const kept = async () => (await client.db.select().from(run))[0]!;
const teams = () => client.db.$count(team);
const insertTeam = ({ transaction, clock }: TaskContext) =>
  transaction(async (tx) => {
    const now = clock.now();
    await tx.insert(team).values({ name: "x", createdAt: now, updatedAt: now });
  });

test("a finished task completes its run, with the item counts that the task returned", async () => {
  const result = { done: 2, skipped: 1, failed: 1 };
  const outcome = await doing(async (context) => {
    await insertTeam(context);
    context.fault("item 7", "not there");
    expect(context.slot).toEqual(clock.now());
    return result;
  });
  expect(outcome).toEqual({ state: "Done", result });
  expect(await kept()).toMatchObject({ state: "Done", result, error: null });
  expect(await client.db.select().from(runFault)).toMatchObject([{ item: "item 7", reason: "not there" }]);
  expect(await teams()).toBe(1);
});

test.each([
  [1, "Its only item failed: item 1: not there"],
  [3, "All 3 items failed: item 1: not there"],
])("a run in which every item failed has failed, with %i", async (failed, error) => {
  const result = { done: 0, skipped: 0, failed };
  const outcome = await doing(async ({ fault }) => {
    for (let item = 1; item <= failed; item += 1) fault(`item ${item}`, "not there");
    return result;
  });
  expect(outcome).toEqual({ state: "Failed", result, error });
  expect(await kept()).toMatchObject({ state: "Failed", result, error });
  expect(await client.db.$count(runFault)).toBe(failed);
});

test("a plugin that failed in each of its calls is recorded, even if others succeeded", async () => {
  const outcome = await doing(async ({ called }) => {
    for (const [slug, succeeded] of Object.entries({ wiki: false, notes: true, other: false }))
      for (let i = 0; i < 2; i += 1) called(slug, succeeded);
    called("other", true);
    return { done: 3, skipped: 0, failed: 2 };
  });
  expect(outcome).toMatchObject({ state: "Done", result: { failing_plugins: { wiki: 2 } } });
  expect((await kept()).result).toEqual({ done: 3, skipped: 0, failed: 2, failing_plugins: { wiki: 2 } });
});

describe("the reason of a failed task", () => {
  test.each([
    ["is our own message", new Unavailable("glossary does not answer"), "glossary does not answer"],
    [
      "contains nothing of a third-party message",
      Object.assign(new TypeError("password=hunter2"), { code: "E_SECRET" }),
      "Unexpected error (TypeError, E_SECRET); see the worker's log",
    ],
    [
      "contains nothing of a thrown value that is not an Error",
      "hunter2",
      "Unexpected error (string); see the worker's log",
    ],
  ])("%s", async (_, thrown, error) => {
    const outcome = await doing(async ({ fault }) => {
      fault("item 1", "seen before");
      throw thrown;
    });
    expect(outcome).toEqual({ state: "Failed", error });
    expect(await kept()).toMatchObject({ state: "Failed", error });
    expect(await client.db.$count(runFault)).toBe(1);
  });

  test("contains neither a query nor its parameters", async () => {
    const outcome = await doing(async ({ transaction }) => {
      await transaction((tx) => tx.execute(sql`select 1 / ${0}::int as hunter2`));
      return nothing;
    });
    expect(outcome.error).toBe("Unexpected error (PostgresError, 22012); see the worker's log");
    expect(logged.join("")).not.toContain("hunter2");
  });
});

test("a task that exceeds its timeout fails, and can no longer change anything", async () => {
  const late = Promise.withResolvers<TaskContext>();
  const wake = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<unknown>();
  const outcome = await doing(
    async (context) => {
      late.resolve(context);
      await wake.promise;
      await insertTeam(context).catch(ended.resolve);
      return nothing;
    },
    { timeoutSeconds: 0.05 },
  );
  expect(outcome).toEqual({ state: "Failed", error: "It took longer than 0.05 s" });
  expect((await late.promise).signal.aborted).toBe(true);
  wake.resolve();
  expect(String(await ended.promise)).toContain("This worker lost the run");
  expect(await teams()).toBe(0);
});

test("a run that ended while its transaction waited for a row or connection starts no work", async () => {
  const ended = Promise.withResolvers<unknown>();
  const outcome = await client.db.transaction(async (tx) => {
    const stop = new AbortController();
    const held = Promise.withResolvers<void>();
    const running = doing(
      async (context) => {
        await tx.select().from(run).for("update");
        held.resolve();
        await insertTeam(context).catch(ended.resolve);
        return nothing;
      },
      { giveUp: stop.signal },
    );
    await held.promise;
    await somebodyWaits(client.db);
    stop.abort();
    // Giving the run back waits for the same row.
    await somebodyWaits(client.db, 2);
    return { running };
  });
  expect(await outcome.running).toEqual({ state: "given_back" });
  expect(String(await ended.promise)).toContain("This worker lost the run");
  expect(await teams()).toBe(0);
});

test("a run that another worker took over is lost, and its result is dropped", async () => {
  const outcome = await doing(async () => {
    clock.advance(31);
    await claimNow(scheduleOf(client.db, clock, "b"), everySeconds("tested", 3600));
    return nothing;
  });
  expect(outcome).toEqual({ state: "lost" });
  expect(await kept()).toMatchObject({ state: "Running", owner: "b", attempt: 2 });
  expect(logged.join("")).toContain("run lost to another worker");
});

describe("a long run", () => {
  test("renews its lease", async () => {
    // Long enough that even on a busy machine each third of the lease sees a renewal.
    deps.schedule = () => ({ ...scheduleOf(client.db, clock, "a"), leaseSeconds: 3 });
    const outcome = await doing(async () => {
      for (let time = 0; time < 2; time += 1) {
        clock.advance(2);
        await until(
          "the lease to be renewed",
          async () => (await kept()).leaseUntil! > after(clock.now(), 2.5),
        );
      }
      return nothing;
    });
    expect(outcome.state).toBe("Done");
  });

  test("is stopped when its lease is lost", async () => {
    deps.schedule = () => ({ ...scheduleOf(client.db, clock, "a"), leaseSeconds: 0.3 });
    const outcome = await doing(({ signal }) => {
      clock.advance(1);
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(nothing)));
    });
    expect(outcome).toEqual({ state: "lost" });
  });

  test("is stopped when the database is unavailable for a whole lease", async () => {
    const closed = openDatabase(client.url, 1);
    await closed.close();
    let db = client.db;
    deps.schedule = () => ({ ...scheduleOf(db, clock, "a"), leaseSeconds: 0.3 });
    const outcome = await doing(() => {
      db = closed.db;
      return new Promise(() => {});
    });
    expect(outcome).toEqual({ state: "lost" });
  });

  test("is lost when its end cannot be recorded for a whole lease", async () => {
    const closed = openDatabase(client.url, 1);
    await closed.close();
    let db = client.db;
    deps.schedule = () => ({ ...scheduleOf(db, clock, "a"), leaseSeconds: 0.3 });
    const outcome = await doing(async () => {
      db = closed.db;
      return nothing;
    });
    expect(outcome).toEqual({ state: "lost" });
  });
});

test("an aborted run is given back", async () => {
  const giveUp = new AbortController();
  const outcome = await doing(
    async ({ signal }) => {
      giveUp.abort();
      expect(signal.aborted).toBe(true);
      return new Promise(() => {});
    },
    { giveUp: giveUp.signal },
  );
  expect(outcome).toEqual({ state: "given_back" });
  expect(await kept()).toMatchObject({ state: "Running", leaseUntil: clock.now() });
});

test("a run whose end cannot be recorded does not delay a stop", async () => {
  const closed = openDatabase(client.url, 1);
  await closed.close();
  const giveUp = new AbortController();
  let db = client.db;
  deps.schedule = () => ({ ...scheduleOf(db, clock, "a"), leaseSeconds: 3 });
  const refusals: string[] = [];
  const write = (line: string) => {
    if (!line.includes("cannot record the end of a run yet")) return;
    refusals.push(line);
    giveUp.abort();
  };
  deps.log = createLog("trace", { write });
  const outcome = await doing(
    async () => {
      db = closed.db;
      return nothing;
    },
    { giveUp: giveUp.signal },
  );
  expect(outcome).toEqual({ state: "lost" });
  expect(refusals).toHaveLength(1);
});

test("nothing starts after a stop, even if the run cannot be given back", async () => {
  const closed = openDatabase(client.url, 1);
  await closed.close();
  const giveUp = new AbortController();
  const answer = Promise.withResolvers<unknown>();
  let db = client.db;
  deps.schedule = () => scheduleOf(db, clock, "a");
  const outcome = await doing(
    async (context) => {
      db = closed.db;
      giveUp.abort();
      answer.resolve(await insertTeam(context).catch(String));
      return nothing;
    },
    { giveUp: giveUp.signal },
  );
  expect(outcome).toEqual({ state: "given_back" });
  expect(await answer.promise).toContain("This worker lost the run");
  expect(await teams()).toBe(0);
});

test("a task's database is read-only", async () => {
  await doing(async ({ db }) => {
    expect(await db.$count(team)).toBe(0);
    // @ts-expect-error: writes go through `transaction`
    db.insert;
    // @ts-expect-error: so does anything that could write
    db.execute;
    return nothing;
  });
});

describe("a run with a transient failure", () => {
  const definition = everySeconds("tested", 3600, 60);
  const cut = Object.assign(new Error("terminating connection"), { code: "57P01" });
  const throwing = (error: unknown) => ({ run: () => Promise.reject(error) });
  /** Claims a due slot. */
  const claimed = async (owner = "a"): Promise<Claim> => {
    const answer = await claimDue(scheduleOf(client.db, clock, owner), definition);
    if (!("claim" in answer)) throw new Error(`nothing to claim before ${answer.lookAgain.toISOString()}`);
    return answer.claim;
  };
  beforeEach(async () => {
    await claimDue(deps.schedule(), definition);
    clock.advance(3600);
    const sent = performance.now();
    deps.time.observe(clock.now(), sent, sent);
  });
  const doClaim = (claim: Claim, task: ScheduledTask) => runClaim(deps, { definition, task }, claim, never);

  test.each([
    ["57P01", "PostgreSQL closed the connection: run it again"],
    ["CONNECTION_CLOSED", "PostgreSQL closed the connection: run it again"],
    ["08006", "The connection to PostgreSQL failed (08006)"],
    ["25006", "This database is read-only (a replica?): run this against the primary"],
    ["53300", "PostgreSQL has no free connection (max_connections)"],
    ["40001", "Another transaction was in the way (40001)"],
    ["40P01", "A table that must change stayed locked: try again when the database is less busy"],
    ["55P03", "A table that must change stayed locked: try again when the database is less busy"],
  ])("(%s) is put off, and another worker makes the next attempt", async (code, reason) => {
    const outcome = await doClaim(await claimed(), throwing(Object.assign(new Error(), { code })));
    expect(outcome).toEqual({ state: "put_off" });
    expect(await kept()).toMatchObject({
      state: "Running",
      attempt: 1,
      error: null,
      leaseUntil: after(clock.now(), 1),
      result: { retries: { count: 1, reason } },
    });
    expect(await claimDue(deps.schedule(), definition)).toEqual({ lookAgain: after(clock.now(), 1) });
    clock.advance(1);
    const again = await claimed("b");
    expect(again).toMatchObject({ owner: "b", attempt: 2, retries: 1 });
    deps.schedule = () => scheduleOf(client.db, clock, "b");
    expect(await doClaim(again, { run: async () => nothing })).toMatchObject({ state: "Done" });
    expect(await kept()).toMatchObject({
      state: "Done",
      result: { ...nothing, retries: { count: 1, attempt: 1 } },
    });
  });

  test("backs off exponentially up to a minute, without an attempt limit, and fails when its slot is over", async () => {
    const waits: number[] = [];
    for (let attempt = 1; ; attempt += 1) {
      const claim = await claimed(attempt % 2 ? "a" : "b");
      deps.schedule = () => scheduleOf(client.db, clock, claim.owner);
      const outcome = await doClaim(claim, throwing(cut));
      if (outcome.state === "Failed") break;
      const wait = ((await kept()).leaseUntil!.getTime() - clock.now().getTime()) / 1000;
      waits.push(wait);
      clock.advance(wait);
      deps.time.observe(clock.now(), performance.now(), performance.now());
    }
    expect(waits.slice(0, 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    expect(waits).toHaveLength(64);
    expect(await kept()).toMatchObject({ state: "Failed", attempt: 65 });
  });

  test("keeps the faults recorded so far", async () => {
    await doClaim(await claimed(), {
      run: async ({ fault }) => {
        fault("document 7", "not there");
        throw cut;
      },
    });
    expect(await client.db.select().from(runFault)).toMatchObject([{ item: "document 7" }]);
  });

  test("is also put off for locked items, which become faults if still locked when the slot is over", async () => {
    const task: ScheduledTask = {
      run: async ({ postpone }) => {
        postpone("incident 7", "locked");
        postpone("incident 8", "locked");
        return { done: 1, skipped: 0, failed: 2 };
      },
    };
    expect(await doClaim(await claimed(), task)).toEqual({ state: "put_off" });
    expect((await kept()).result.retries?.reason).toBe("incident 7: locked, and 1 more");
    expect(await client.db.$count(runFault)).toBe(0);
    clock.advance(3599);
    deps.time.observe(clock.now(), performance.now(), performance.now());
    expect(await doClaim(await claimed(), task)).toMatchObject({ state: "Done", result: { failed: 2 } });
    expect(await client.db.select().from(runFault)).toMatchObject([
      { item: "incident 7" },
      { item: "incident 8" },
    ]);
  });

  test("fails at once if started by hand, since somebody waits for the outcome", async () => {
    const outcome = await doing(() => Promise.reject(cut));
    expect(outcome).toMatchObject({
      state: "Failed",
      error: expect.stringContaining("closed the connection"),
    });
  });

  test("does not count as a worker's death; nor does a stop or an outage longer than a lease", async () => {
    for (let time = 0; time < 10; time += 1) {
      const claim = await claimed();
      if (time % 3 === 0) await doClaim(claim, throwing(cut));
      else if (time % 3 === 1)
        await runClaim(deps, { definition, task: throwing(cut) }, claim, AbortSignal.abort());
      else await forgiveAttempt(deps.schedule(), claim);
      clock.advance(60);
    }
    for (let death = 0; death < 5; death += 1) {
      await claimed();
      clock.advance(31);
    }
    expect(await claimDue(deps.schedule(), definition)).toHaveProperty("lookAgain");
    expect(await kept()).toMatchObject({ state: "Failed", error: "Its worker died 5 times", attempt: 15 });
  });
});
