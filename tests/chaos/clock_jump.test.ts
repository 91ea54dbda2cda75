import { expect, test } from "bun:test";
import { asc } from "drizzle-orm";
import { rewind } from "../../core/schedule/operate.ts";
import { run, worker } from "../../drizzle/schema/index.ts";
import { after, systemClock } from "../../platform/clock.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { Connections } from "../../worker/connections.ts";
import { DatabaseTime } from "../../worker/time.ts";
import { work } from "../../worker/worker.ts";
import { startOutbox } from "../support/domain/delivery.ts";
import { everySeconds, runningClock } from "../support/domain/schedule.ts";
import { until } from "../support/process/until.ts";

test("a worker continues after the database's clock jumps a day ahead and back, after a rewind", async () => {
  await using outbox = await startOutbox();
  const { db } = outbox;
  const start = new Date("2026-12-01T12:00:00.000Z");
  const clock = runningClock(start);
  const connections = new Connections({ url: outbox.url, poolSize: 2, prepare: true });
  const stop = new AbortController();
  const task = { run: async () => ({ done: 1, skipped: 0, failed: 0 }) };
  const time = new DatabaseTime();
  const config = { timezone: "UTC" };
  const working = work(
    {
      ...outbox.context(pluginsOf()),
      time,
      db: () => connections.db,
      reopen: () => connections.reopen(),
      schedule: () => ({
        db: connections.schedule,
        databaseClock: clock,
        config,
        owner: "a",
        leaseSeconds: 30,
      }),
    },
    [{ definition: everySeconds("tick", 2, 60), task }],
    stop.signal,
  );
  const slots = async () => (await db.select().from(run).orderBy(asc(run.slot))).map(({ slot }) => slot);
  const tomorrow = after(start, 86_400);
  try {
    await until("a slot to be run", async () => (await slots()).length > 0);
    clock.set(after(tomorrow, 60));
    await until("slots of tomorrow to be run", async () => (await slots()).some((at) => at > tomorrow), 60);
    const back = after(start, 120);
    clock.set(back);
    await until(
      "the worker to see it",
      async () => (await db.select().from(worker)).every(({ seenAt }) => seenAt < tomorrow),
      60,
    );
    const context = { db, databaseClock: clock, config, clock: systemClock };
    expect(await rewind(context)).toBeGreaterThan(0);
    await until(
      "slots of today to be run again",
      async () => (await slots()).filter((at) => at >= back).length > 2,
      60,
    );
    expect((await slots()).every((at) => at < tomorrow)).toBe(true);
  } finally {
    stop.abort();
    await working;
    await connections.close();
  }
}, 240_000);
