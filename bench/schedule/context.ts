import { readConfig } from "../../core/config.ts";
import type { Plugins } from "../../core/plugin/choose.ts";
import type { Database } from "../../drizzle/client.ts";
import { createLog } from "../../platform/log.ts";
import type { TestClock } from "../../tests/support/clock.ts";
import { taskContextOf } from "../../tests/support/domain/task_context.ts";
import type { TaskContext } from "../../worker/task.ts";

const none: Plugins = { ofType: () => [], find: () => undefined };

/** The context of a task without a worker. */
export function contextOf(db: Database, clock: TestClock, plugins = none): TaskContext {
  return taskContextOf({ db, clock, plugins, config: readConfig({}), log: createLog("silent") });
}

export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
}
