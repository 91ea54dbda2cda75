import { and, eq, isNotNull } from "drizzle-orm";
import { document, task } from "../../../drizzle/schema/index.ts";
import { Forbidden } from "../../../platform/errors.ts";
import { audit } from "../../audit.ts";
import { unlessReferredTo } from "../../catalog/reference.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncidentOf } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { noSuchDocument } from "./document.ts";

/**
 * Deletes a document with its text and the tombstones of its tasks, which are invisible and would otherwise stay. Only
 * admins may delete.
 *
 * @throws Forbidden before anything is looked up
 * @throws NotFound
 * @throws Conflict naming what refers to it
 */
export async function removeDocument(
  { db, clock }: Context,
  actor: Actor,
  { id, address }: { id: number; address: string },
): Promise<void> {
  if (!actor.admin) throw new Forbidden("Only an admin can delete documents");
  await db.transaction(async (tx) => {
    await lockIncidentOf(tx, document, id);
    const at = clock.now();
    await tx.delete(task).where(and(eq(task.documentId, id), isNotNull(task.deletedAt)));
    const [removed] = await unlessReferredTo(
      "This document",
      tx
        .delete(document)
        .where(eq(document.id, id))
        .returning({ name: document.name, incidentId: document.incidentId }),
    );
    if (!removed) throw noSuchDocument();
    const { name, incidentId } = removed;
    await audit(tx, { at, actor: actor.user, action: "document.deleted", address, subject: String(id) });
    if (incidentId !== null) {
      await recordEvent(tx, {
        incidentId,
        at,
        actor: actor.user,
        kind: "document.deleted",
        description: `Document deleted: ${name}`,
        data: { document_id: id },
      });
    }
  });
}
