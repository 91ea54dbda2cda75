import type { OperatorContext } from "../core/schedule/operate.ts";
import type { TaskName } from "../core/schedule/tasks.ts";
import { databaseUrlIn } from "./database_url.ts";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { serviceEnvironment } from "./trial.ts";

/** What each command about one task takes. */
export const taskArgument = { type: "positional", description: "A task of the schedule" } as const;

/** @throws UsageError with the names that there are */
export async function taskNamed(name: string): Promise<TaskName> {
  const { findTask, scheduledTasks } = await import("../core/schedule/tasks.ts");
  const task = findTask(name);
  if (task) return task.name;
  throw new UsageError(
    `unknown task: ${name}. There are ${scheduledTasks.map((one) => one.name).join(", ")}`,
  );
}

/** Works with the schedule of the database that SVC_DATABASE_URL names. */
export async function onSchedule<T>(io: Io, use: (context: OperatorContext) => Promise<T>): Promise<T> {
  const { environment } = await serviceEnvironment(io);
  const url = await databaseUrlIn(environment);
  const { operate } = await import("../core/schedule/operate.ts");
  return operate({ url, environment }, use);
}

/** As a person reads it: to the second, in UTC. */
export function instantText(at: Date | null): string {
  return at === null ? "-" : at.toISOString().replace(/\.\d+Z$/, "Z");
}
