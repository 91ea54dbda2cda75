import { and, eq, inArray, or } from "drizzle-orm";
import { incident, incidentLink } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncidents } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { seeIncident } from "../visibility/see.ts";
import { mayReadOther, noSuchLink } from "./link.ts";

/**
 * Removes a link. Anyone who may read both incidents may do so. A timeline says so if the other incident is Open.
 *
 * @throws NotFound also when the actor may not read one of the incidents
 */
export async function removeLink(
  { db, clock }: Context,
  actor: Actor,
  { incidentId, linkId }: { incidentId: number; linkId: number },
): Promise<void> {
  await db.transaction(async (tx) => {
    await seeIncident({ db: tx }, actor, incidentId);
    const wanted = and(
      eq(incidentLink.id, linkId),
      or(eq(incidentLink.incidentId, incidentId), eq(incidentLink.linkedId, incidentId)),
      mayReadOther(actor, incidentId),
    );
    const { incidentId: one, linkedId: other } = incidentLink;
    const [found] = await tx.select({ one, other }).from(incidentLink).where(wanted);
    if (!found) throw noSuchLink();
    await lockIncidents(tx, [found.one, found.other]);
    const at = clock.now();
    // Before we had the locks, one may have become Restricted, or the link may have been removed.
    await seeIncident({ db: tx }, actor, incidentId);
    const [removed] = await tx.delete(incidentLink).where(wanted).returning({ id: incidentLink.id });
    if (!removed) throw noSuchLink();
    const open = await tx
      .select({ id: incident.id })
      .from(incident)
      .where(and(inArray(incident.id, [found.one, found.other]), eq(incident.visibility, "Open")));
    for (const [id, other] of [
      [found.one, found.other],
      [found.other, found.one],
    ] as const) {
      if (!open.some((one) => one.id === other)) continue;
      await recordEvent(tx, {
        incidentId: id,
        at,
        actor: actor.user,
        kind: "incident.unlinked",
        data: { link_id: linkId },
        description: "The link with another incident was removed",
      });
    }
  });
}
