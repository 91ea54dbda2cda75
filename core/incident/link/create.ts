import type { Transaction } from "../../../drizzle/client.ts";
import { incidentLink, type incidentLinkKinds } from "../../../drizzle/schema/index.ts";
import { Conflict, InvalidInput } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncident, lockNamedIncident } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { seeIncident } from "../visibility/see.ts";
import type { Link } from "./link.ts";

export type LinkKind = (typeof incidentLinkKinds)[number];

/**
 * Links an incident with another one: as related, or as a duplicate of it. Anyone who may read both may do so. A timeline
 * says that there is a link if the other incident is Open, but not with which, because that one may become Restricted.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput when the actor may not read the other one, or it is the same
 * @throws Conflict when they are linked already
 */
export async function createLink(
  context: Context,
  actor: Actor,
  { incidentId, linkedId, kind }: { incidentId: number; linkedId: number; kind: LinkKind },
): Promise<Link> {
  return context.db.transaction(async (tx) => {
    await seeIncident({ db: tx }, actor, incidentId);
    if (linkedId === incidentId)
      throw new InvalidInput("incident", "An incident cannot be linked with itself");
    const [one, other] = await lockBoth(tx, actor, incidentId, linkedId);
    const { id, name, title, status } = other;
    const createdAt = context.clock.now();
    const [made] = await tx
      .insert(incidentLink)
      .values({ incidentId, linkedId, kind, createdAt })
      .onConflictDoNothing()
      .returning({ id: incidentLink.id });
    if (!made) throw new Conflict("These incidents are linked already");
    const side = kind === "related" ? "related" : "duplicate_of";
    const shared = { at: createdAt, actor: actor.user, kind: "incident.linked" } as const;
    const data = { link_id: made.id };
    const related = "Linked with a related incident";
    // Readers of an incident must not notice one that they may not read.
    if (other.visibility === "Open")
      await recordEvent(tx, {
        ...shared,
        incidentId,
        data: { ...data, link: side },
        description: kind === "related" ? related : "Marked as a duplicate of another incident",
      });
    if (one.visibility === "Open")
      await recordEvent(tx, {
        ...shared,
        incidentId: linkedId,
        data: { ...data, link: kind === "related" ? "related" : "duplicated_by" },
        description: kind === "related" ? related : "Another incident was marked as a duplicate of this one",
      });
    return { id: made.id, kind: side, incident: { id, name, title, status }, createdAt };
  });
}

/** Locks both in the order of their ids, so that two callers cannot deadlock. Returns them in the given order. */
async function lockBoth(tx: Transaction, actor: Actor, incidentId: number, linkedId: number) {
  const lockOther = () => lockNamedIncident(tx, actor, linkedId, "incident");
  if (linkedId < incidentId) {
    const other = await lockOther();
    return [await lockIncident(tx, actor, incidentId), other] as const;
  }
  return [await lockIncident(tx, actor, incidentId), await lockOther()] as const;
}
