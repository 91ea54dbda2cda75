import { and, eq, isNull } from "drizzle-orm";
import { task } from "../../../drizzle/schema/index.ts";
import { Forbidden } from "../../../platform/errors.ts";
import { audit } from "../../audit.ts";
import { unlessReferredTo } from "../../catalog/reference.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncidentOf } from "../incident/lock.ts";
import { noSuchTask } from "./task.ts";
import { recordTaskEvent } from "./write.ts";

/**
 * Deletes a task. Only admins may delete.
 *
 * @throws Forbidden before anything is looked up
 * @throws NotFound
 */
export async function removeTask(
  { db, clock }: Context,
  actor: Actor,
  { id, address }: { id: number; address: string },
): Promise<void> {
  if (!actor.admin) throw new Forbidden("Only an admin can delete tasks");
  await db.transaction(async (tx) => {
    await lockIncidentOf(tx, task, id);
    const at = clock.now();
    const [removed] = await unlessReferredTo(
      "This task",
      tx
        .delete(task)
        .where(and(eq(task.id, id), isNull(task.deletedAt)))
        .returning({ id: task.id, incidentId: task.incidentId, description: task.description }),
    );
    if (!removed) throw noSuchTask();
    await audit(tx, { at, actor: actor.user, action: "task.deleted", address, subject: String(id) });
    await recordTaskEvent(tx, "task.deleted", removed, { at, actor: actor.user });
  });
}
