import { and, eq } from "drizzle-orm";
import { document } from "../../../drizzle/schema/index.ts";
import { Changed } from "../../../platform/errors.ts";
import { setReasons } from "../../catalog/reason.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncidentOf } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { mayReadOf } from "../visibility/visibility.ts";
import { type Document, type DocumentFields, documentLinks, parseDocument } from "./document.ts";
import { getDocument } from "./get.ts";

/**
 * Replaces the fields of a document. Anyone who may read it may change it.
 *
 * @throws InvalidInput
 * @throws NotFound also when the actor may not read it
 * @throws Conflict when it is no longer at `version`
 */
export async function updateDocument(
  context: Context,
  actor: Actor,
  change: DocumentFields & { id: number; version: number },
): Promise<Document> {
  const { db, clock } = context;
  const { id, version } = change;
  const fields = parseDocument(change);
  return db.transaction(async (tx) => {
    await lockIncidentOf(tx, document, id, actor);
    const at = clock.now();
    const [updated] = await tx
      .update(document)
      .set({ ...fields, version: version + 1, updatedAt: at })
      .where(and(eq(document.id, id), eq(document.version, version), mayReadOf(actor, document.incidentId)))
      .returning({ name: document.name, incidentId: document.incidentId });
    if (!updated) {
      const now = await getDocument({ ...context, db: tx }, actor, id);
      throw new Changed("document", now.version);
    }
    const lost = await setReasons(tx, documentLinks, id, change);
    // A removed term may still occur in the text: make the worker read it again.
    if (lost.has("termIds"))
      await tx.update(document).set({ termContentHash: null }).where(eq(document.id, id));
    if (updated.incidentId !== null) {
      await recordEvent(tx, {
        incidentId: updated.incidentId,
        at,
        actor: actor.user,
        kind: "document.updated",
        description: `Document changed: ${updated.name}`,
        data: { document_id: id },
      });
    }
    return getDocument({ ...context, db: tx }, actor, id);
  });
}
