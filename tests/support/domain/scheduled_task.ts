import type { Plugins } from "../../../core/plugin/choose.ts";
import type { Fault, TaskResult } from "../../../core/schedule/runs.ts";
import type { Database } from "../../../drizzle/client.ts";
import type { Environment } from "../../../platform/variable.ts";
import type { ScheduledTask, TaskContext } from "../../../worker/task.ts";
import type { TestClock } from "../clock.ts";
import { noPlugins, startPluginTest } from "./plugins.ts";
import { taskContextOf } from "./task_context.ts";

export interface TaskTest {
  db: Database;
  clock: TestClock;
  /** All log lines. */
  logged: string[];
  /** The number of SELECTs outside of transactions, and of transactions, that tasks have sent so far. */
  sent: { statements: number; transactions: number };
  /** Runs the task once, without a worker. */
  run(
    task: ScheduledTask,
    plugins: Plugins,
    more?: Partial<TaskContext>,
  ): Promise<{ result: TaskResult; faults: Fault[] }>;
  /** Chooses built-in plugins by variables. */
  choose(environment: Environment): Promise<Plugins>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts tests of scheduled tasks, on a new database. */
export async function startTaskTest(): Promise<TaskTest> {
  const its = await startPluginTest(noPlugins);
  const { db, clock } = its.context;
  const sent = { statements: 0, transactions: 0 };
  const counting = new Proxy(db, {
    get: (target, name, receiver) => {
      if (name === "select") sent.statements += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return {
    db,
    clock,
    sent,
    logged: its.logged,
    run: async (task, plugins, more) => {
      const faults: Fault[] = [];
      const context = taskContextOf({ ...its.context, plugins }, faults);
      const result = await task.run({
        ...context,
        db: counting,
        transaction: (work) => {
          sent.transactions += 1;
          return context.transaction(work);
        },
        ...more,
      });
      return { result, faults };
    },
    choose: (environment) => its.choose({ ...noPlugins, ...environment }),
    [Symbol.asyncDispose]: () => its[Symbol.asyncDispose](),
  };
}
