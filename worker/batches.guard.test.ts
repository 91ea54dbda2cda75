import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { transience } from "../drizzle/database_error.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { startTaskTest, type TaskTest } from "../tests/support/domain/scheduled_task.ts";
import { inBatches } from "./batches.ts";
import type { ScheduledTask } from "./task.ts";

let its: TaskTest;
beforeAll(async () => {
  its = await startTaskTest();
});
afterAll(() => its[Symbol.asyncDispose]());

test("a stopped run fetches no further batch", async () => {
  const stop = new AbortController();
  const reason = new Error("stopped");
  const asked: number[] = [];
  const task: ScheduledTask = {
    run: (context) =>
      inBatches(context, {
        find: async (last, limit) => {
          asked.push(last);
          return last < 3 * limit ? Array.from({ length: limit }, (_, i) => last + 1 + i) : [];
        },
        nameOf: (id) => `record ${id}`,
        work: async () => {
          if (asked.length === 2) stop.abort(reason);
          return { done: 0, skipped: 0, faults: [] };
        },
      }),
  };
  await expect(its.run(task, pluginsOf(), { signal: stop.signal })).rejects.toBe(reason);
  expect(asked).toEqual([0, 200]);
});

test("a run ends when more than 100 records are locked", async () => {
  const { db } = its;
  const count = 101;
  await db.execute(sql`create table record as select generate_series(1, ${count}::int) as id`);
  const tried = new Set<number>();
  const task: ScheduledTask = {
    run: (context) =>
      inBatches(context, {
        find: async (last, limit) =>
          Array.from({ length: Math.min(limit, count - last) }, (_, i) => last + 1 + i),
        nameOf: (id) => `record ${id}`,
        // NOWAIT, because waiting for lock_timeout on every batch of locked rows would take a minute.
        work: async (tx, ids) => {
          for (const id of ids) tried.add(id);
          await tx.execute(
            sql`select from record where id >= ${ids[0]} and id <= ${ids.at(-1)} for update nowait`,
          );
          return { done: ids.length, skipped: 0, faults: [] };
        },
      }),
  };
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const { promise: held, resolve: hold } = Promise.withResolvers<void>();
  const holder = db.transaction(async (tx) => {
    await tx.execute(sql`select from record for update`);
    hold();
    await ended;
  });
  await Promise.race([held, holder]);
  const run = its.run(task, pluginsOf());
  const error = await run.catch((thrown: unknown) => thrown).finally(end);
  await holder;
  expect(transience(error)).toBe("contention");
  expect(tried.size).toBe(count);
});
