import { task } from "../../../drizzle/schema/index.ts";
import { Changed, Conflict } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncidentOf } from "../incident/lock.ts";
import { getTask, isTask } from "./get.ts";
import { refuseUnknown } from "./people.ts";
import { parseTask, type Task } from "./task.ts";
import { sameContent, type TaskChange, writeTask } from "./write.ts";

/**
 * Replaces the fields of a task. Anyone who may read it may change it. If it is kept in its document, they may change
 * only its reminders.
 *
 * @throws InvalidInput
 * @throws NotFound also when the actor may not read it
 * @throws Conflict when it is no longer at `version`, or is kept in its document
 */
export async function updateTask(
  context: Context,
  actor: Actor,
  change: TaskChange & { id: number; version: number },
): Promise<Task> {
  const { db, clock, config } = context;
  const { id, version, status, resolveBy } = change;
  const next = { ...parseTask(change, config.domain), status, resolveBy };
  return db.transaction(async (tx) => {
    await lockIncidentOf(tx, task, id, actor);
    const found = await getTask({ db: tx }, actor, id);
    if (found.version !== version) throw new Changed("task", found.version);
    const current = {
      ...found,
      owner: found.owner?.email ?? null,
      assignees: found.assignees.map(({ email }) => email).sort(),
    };
    if (found.externalId !== null && !(sameContent(current, next) && found.status === status))
      throw new Conflict("This task is kept in its document: change it there");
    await refuseUnknown(tx, actor, next);
    const written = await writeTask(tx, current, next, {
      at: clock.now(),
      actor: actor.user,
      condition: isTask(actor, id),
    });
    const now = await getTask({ db: tx }, actor, id);
    if (!written) throw new Changed("task", now.version);
    return now;
  });
}
