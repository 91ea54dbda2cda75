import { and, eq, isNull, type SQL } from "drizzle-orm";
import { task } from "../../../drizzle/schema/index.ts";
import type { Context } from "../../context.ts";
import { mayReadOf, type Reader } from "../visibility/visibility.ts";
import { noSuchTask, type Task, taskColumns } from "./task.ts";

/** Matches the task `id`, unless the reader may not read it or it is gone from its document. */
export function isTask(by: Reader, id: number): SQL | undefined {
  return and(eq(task.id, id), isNull(task.deletedAt), mayReadOf(by, task.incidentId));
}

/** @throws NotFound also when the actor may not read it */
export async function getTask({ db }: Pick<Context, "db">, by: Reader, id: number): Promise<Task> {
  const [found] = await db.select(taskColumns).from(task).where(isTask(by, id));
  if (!found) throw noSuchTask();
  return found;
}
