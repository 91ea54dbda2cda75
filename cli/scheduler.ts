import type { OperatorContext } from "../core/schedule/operate.ts";
import type { TaskName } from "../core/schedule/tasks.ts";
import { databaseUrlIn } from "./database/url.ts";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { serviceEnvironment } from "./trial.ts";

/** The argument of every command for one task. */
export const taskArgument = {
  type: "positional",
  description: "Scheduled task: svc scheduler list",
} as const;

/** @throws UsageError that lists the tasks */
export async function taskNamed(name: string): Promise<TaskName> {
  const { findTask, scheduledTasks } = await import("../core/schedule/tasks.ts");
  const task = findTask(name);
  if (task) return task.name;
  throw new UsageError(
    `unknown task: ${name}. The tasks are ${scheduledTasks.map((one) => one.name).join(", ")}`,
  );
}

/** Runs `use` with the schedule in the database of SVC_DATABASE_URL. */
export async function onSchedule<T>(io: Io, use: (context: OperatorContext) => Promise<T>): Promise<T> {
  const { environment } = await serviceEnvironment(io);
  const url = await databaseUrlIn(environment);
  const { operate } = await import("../core/schedule/operate.ts");
  return operate({ url, environment }, use);
}

/** To the second, in UTC. */
export function instantText(at: Date | null): string {
  return at === null ? "-" : at.toISOString().replace(/\.\d+Z$/, "Z");
}
