import { and, eq, isNull } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { participant, participantRole } from "../../../drizzle/schema/index.ts";
import { Forbidden } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import type { PluginContext } from "../../plugin/context.ts";
import { planJoined } from "../flow/plan.ts";
import { costChanged } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { changeParticipant } from "./change.ts";
import {
  activeParticipant,
  type Change,
  commanderOf,
  handOverFirst,
  type Participant,
} from "./participant.ts";

export interface Leaving extends Change {
  participantId: number;
}

/**
 * Ends a participation with all its roles. A commander must hand over first. The caller holds `lockIncident`.
 *
 * @throws NotFound when this is no participant of the incident
 * @throws Conflict when they have left already, or are the commander
 */
export async function leave(tx: Transaction, wanted: Leaving): Promise<void> {
  const { incidentId, participantId, at, actor, source } = wanted;
  const { name } = await activeParticipant(tx, incidentId, participantId);
  const commander = await commanderOf(tx, incidentId);
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
    actor,
    source,
    kind: "participant.left",
    description: `${name} left`,
    data: { participant_id: participantId, roles: renounced.map(({ role }) => role).sort() },
  });
  await costChanged(tx, incidentId);
}

/**
 * Removes a participant from an incident: themselves or, in an Open one, anyone who may read it. In a Restricted one,
 * only its commander and admins may remove others, because they then can no longer read it.
 *
 * @throws NotFound also for an incident that the actor may not read
 * @throws Forbidden
 * @throws Conflict
 */
export async function leaveIncident(
  context: PluginContext,
  actor: Actor,
  { incidentId, participantId }: Pick<Leaving, "incidentId" | "participantId">,
): Promise<Participant> {
  return changeParticipant(context, actor, incidentId, async (tx, change, { visibility }) => {
    const leaver = await activeParticipant(tx, incidentId, participantId);
    if (visibility === "Restricted" && !actor.admin && leaver.email !== actor.user) {
      const commander = await commanderOf(tx, incidentId);
      if (commander?.email !== actor.user)
        throw new Forbidden("Only the participant, the commander or an admin can do that");
    }
    await leave(tx, { participantId, ...change });
    await planJoined(tx, { incidentId, plugins: context.plugins, at: change.at });
    return participantId;
  });
}
