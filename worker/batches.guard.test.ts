import { afterAll, beforeAll, expect, test } from "bun:test";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { startTaskTest, type TaskTest } from "../tests/support/domain/scheduled_task.ts";
import { inBatches } from "./batches.ts";
import type { ScheduledTask } from "./task.ts";

let its: TaskTest;
beforeAll(async () => {
  its = await startTaskTest();
});
afterAll(() => its[Symbol.asyncDispose]());

test("behind a stop no further batch is looked for", async () => {
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
