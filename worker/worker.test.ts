import { expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import { readConfig } from "../core/config.ts";
import { scheduledTask } from "../drizzle/schema/index.ts";
import { createLog } from "../platform/log.ts";
import { TestClock } from "../tests/support/clock.ts";
import { useDatabase } from "../tests/support/database/database.ts";
import { everySeconds, runningClock, scheduleOf } from "../tests/support/domain/schedule.ts";
import { until } from "../tests/support/process/until.ts";
import type { WorkerDeps } from "./deps.ts";
import type { TaskContext } from "./task.ts";
import { DatabaseTime } from "./time.ts";
import { work, workNow } from "./worker.ts";

const client = useDatabase(6);
const clock = new TestClock();

function depsOf(schedule: WorkerDeps["schedule"]): WorkerDeps {
  return {
    schedule,
    db: () => client.db,
    time: new DatabaseTime(),
    config: readConfig({}),
    log: createLog("silent"),
    plugins: { ofType: () => [], find: () => undefined },
    reopen: () => {},
  };
}

/** How often connections are replaced during a worker's first heartbeat. */
async function reopened(schedule: WorkerDeps["schedule"]): Promise<number> {
  let times = 0;
  const deps = {
    ...depsOf(schedule),
    reopen: () => {
      times += 1;
    },
  };
  const failing = {
    definition: everySeconds("tested", 3600, 60),
    task: { run: () => Promise.reject(new Error()) },
  };
  await expect(workNow(deps, failing, new AbortController().signal)).rejects.toThrow();
  return times;
}

test("replaces connections that do not answer", async () => {
  await client.db.transaction(async (tx) => {
    await tx.execute(sql`lock table worker`);
    expect(await reopened(() => scheduleOf(client.db, clock, "a"))).toBe(1);
  });
});

test("keeps connections whose answer was late because the process was suspended", async () => {
  const now = performance.now.bind(performance);
  let stoodStill = 0;
  using _ = spyOn(performance, "now").mockImplementation(() => now() + stoodStill);
  const refused = () => {
    stoodStill = 60_000;
    throw new Error("refused");
  };
  expect(await reopened(refused)).toBe(0);
});

/** Starts workers on a task, and notes the time of each of its runs, which `end` ends. */
function start(
  { owners, period, at }: { owners: readonly string[]; period: number; at: string },
  end: () => Promise<void>,
) {
  const databaseClock = runningClock(new Date(at));
  const runs: { owner: string; now: Date }[] = [];
  const definition = everySeconds("tested", period, 60);
  const workers = owners.map((owner) => {
    const stop = new AbortController();
    const run = async ({ clock }: TaskContext) => {
      runs.push({ owner, now: clock.now() });
      await end();
      return { done: 0, skipped: 0, failed: 0 };
    };
    const deps = depsOf(() => ({ ...scheduleOf(client.db, clock, owner), databaseClock }));
    return { owner, stop, ended: work(deps, [{ definition, task: { run } }], stop.signal, 0) };
  });
  const isKnown = async () => (await client.db.$count(scheduledTask)) > 0;
  const dispose = async () => {
    for (const { stop } of workers) stop.abort();
    await Promise.all(workers.map(({ ended }) => ended));
    await client.db.execute(sql`truncate run, run_fault, scheduled_task, worker cascade`);
  };
  return { runs, workers, isKnown, databaseClock, [Symbol.asyncDispose]: dispose };
}

test("a run that a stopped worker gives back is continued at once", async () => {
  const ends = [new Promise<never>(() => {}), Promise.resolve()];
  const place = { owners: ["a", "b"], period: 3600, at: "2026-12-01T12:59:57.000Z" };
  await using started = start(place, () => ends.shift()!);
  const { runs, workers } = started;
  const [first] = await until("a run", () => runs.length > 0 && runs);
  workers.find(({ owner }) => owner === first!.owner)!.stop.abort();
  // The lease would end after 30 s.
  await until("the other worker", () => runs.length > 1, 15);
  expect(runs[1]!.owner).not.toBe(first!.owner);
});

test("a run goes by the database's time, even if its clock was set since the last heartbeat", async () => {
  const place = { owners: ["a"], period: 5, at: "2026-12-01T12:00:00.500Z" };
  await using started = start(place, () => Promise.resolve());
  const { runs, isKnown, databaseClock } = started;
  await until("the task to be known", isKnown);
  databaseClock.set(new Date("2026-12-02T12:00:02.000Z"));
  const [first] = await until("a run", () => runs.length > 0 && runs);
  expect(first!.now.getTime()).toBeGreaterThan(Date.parse("2026-12-02T12:00:02.000Z"));
});
