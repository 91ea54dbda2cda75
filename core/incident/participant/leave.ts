import { and, eq, isNull } from "drizzle-orm";
import { participant, participantRole } from "../../../drizzle/schema/index.ts";
import { Forbidden } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { planJoined } from "../flow/plan.ts";
import { costChanged } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { changeParticipant } from "./change.ts";
import { activeParticipant, commanderOf, handOverFirst, type Participant } from "./participant.ts";

/**
 * Ends a participation with all its roles: one's own or, in an Open incident, that of anyone, by anyone who may read it.
 * In a Restricted one, only its commander and admins may remove others, because they then can no longer read it. A
 * commander must hand over first.
 *
 * @throws NotFound also for an incident that the actor may not read
 * @throws Forbidden
 * @throws Conflict when they have left already, or are the commander
 */
export async function leaveIncident(
  context: AppContext,
  actor: Actor,
  { incidentId, participantId }: { incidentId: number; participantId: number },
): Promise<Participant> {
  return changeParticipant(context, actor, incidentId, async (tx, { at }, { visibility }) => {
    const leaver = await activeParticipant(tx, incidentId, participantId);
    const commander = await commanderOf(tx, incidentId);
    if (visibility === "Restricted" && !actor.admin && ![leaver.email, commander?.email].includes(actor.user))
      throw new Forbidden("Only the participant, the commander or an admin can do that");
    if (commander?.id === participantId) throw handOverFirst();
    await tx.update(participant).set({ leftAt: at }).where(eq(participant.id, participantId));
    const renounced = await tx
      .update(participantRole)
      .set({ renouncedAt: at })
      .where(and(eq(participantRole.participantId, participantId), isNull(participantRole.renouncedAt)))
      .returning({ role: participantRole.role });
    await recordEvent(tx, {
      incidentId,
      at,
      actor: actor.user,
      kind: "participant.left",
      description: `${leaver.name} left`,
      data: { participant_id: participantId, roles: renounced.map(({ role }) => role).sort() },
    });
    await costChanged(tx, incidentId);
    await planJoined(tx, { incidentId, plugins: context.plugins, at });
    return participantId;
  });
}
