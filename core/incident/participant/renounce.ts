import { and, eq, isNull } from "drizzle-orm";
import { participantRole } from "../../../drizzle/schema/index.ts";
import { Conflict } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { costChanged } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { changeParticipant } from "./change.ts";
import {
  activeParticipant,
  commanderOf,
  handOverFirst,
  type Participant,
  type ParticipantRole,
  roleWords,
} from "./participant.ts";

/**
 * Ends a role of a participant. Anyone who may read an incident may do so. Command only ends by being taken over: an
 * incident that has a commander keeps one.
 *
 * @throws NotFound also for an incident that the actor may not read
 * @throws Conflict when they have left, do not have the role, or are the commander
 */
export async function renounceRole(
  context: AppContext,
  actor: Actor,
  { incidentId, participantId, role }: { incidentId: number; participantId: number; role: ParticipantRole },
): Promise<Participant> {
  return changeParticipant(context, actor, incidentId, async (tx, { at }) => {
    const { name } = await activeParticipant(tx, incidentId, participantId);
    const commander = role === "commander" ? await commanderOf(tx, incidentId) : undefined;
    if (commander?.id === participantId) throw handOverFirst();
    const [renounced] = await tx
      .update(participantRole)
      .set({ renouncedAt: at })
      .where(
        and(
          eq(participantRole.participantId, participantId),
          eq(participantRole.role, role),
          isNull(participantRole.renouncedAt),
        ),
      )
      .returning({ id: participantRole.id });
    if (!renounced) throw new Conflict("This participant does not have the role");
    await recordEvent(tx, {
      incidentId,
      at,
      actor: actor.user,
      kind: "role.renounced",
      description: `${name} is no longer ${roleWords[role]}`,
      data: { participant_id: participantId, role },
    });
    await costChanged(tx, incidentId);
    return participantId;
  });
}
