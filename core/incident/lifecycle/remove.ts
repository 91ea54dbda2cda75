import { eq } from "drizzle-orm";
import { incident } from "../../../drizzle/schema/index.ts";
import { Forbidden } from "../../../platform/errors.ts";
import { audit } from "../../audit.ts";
import { unlessReferredTo } from "../../catalog/reference.ts";
import type { Actor, Context } from "../../context.ts";
import { noSuchIncident } from "../visibility/see.ts";

/**
 * Deletes an incident with its participants and its timeline, unless it has documents or tasks. Only admins may delete.
 *
 * @throws Forbidden before anything is looked up
 * @throws NotFound
 * @throws Conflict naming what refers to it
 */
export async function removeIncident(
  { db, clock }: Context,
  actor: Actor,
  { id, address }: { id: number; address: string },
): Promise<void> {
  if (!actor.admin) throw new Forbidden("Only an admin can delete incidents");
  const at = clock.now();
  await db.transaction(async (tx) => {
    const [removed] = await unlessReferredTo(
      "This incident",
      tx.delete(incident).where(eq(incident.id, id)).returning({ name: incident.name }),
    );
    if (!removed) throw noSuchIncident();
    await audit(tx, {
      at,
      actor: actor.user,
      action: "incident.deleted",
      address,
      subject: String(id),
      // The timeline is gone, so only this still identifies the incident.
      data: { name: removed.name },
    });
  });
}
