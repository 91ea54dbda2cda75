import { and, eq, isNull } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { participantRole } from "../../../drizzle/schema/index.ts";
import { Conflict } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import type { PluginContext } from "../../plugin/context.ts";
import { costChanged } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { changeParticipant } from "./change.ts";
import {
  activeParticipant,
  type Change,
  commanderOf,
  handOverFirst,
  type Participant,
  type ParticipantRole,
  roleWords,
} from "./participant.ts";

export interface Renunciation extends Change {
  participantId: number;
  role: ParticipantRole;
}

/**
 * Ends a role of a participant. Command only ends by being taken over: an incident that has a commander keeps one. The
 * caller holds `lockIncident`.
 *
 * @throws NotFound when this is no participant of the incident
 * @throws Conflict when they have left, do not have the role, or are the commander
 */
async function renounce(tx: Transaction, wanted: Renunciation): Promise<void> {
  const { incidentId, participantId, role, at, actor, source } = wanted;
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
    actor,
    source,
    kind: "role.renounced",
    description: `${name} is no longer ${roleWords[role]}`,
    data: { participant_id: participantId, role },
  });
  await costChanged(tx, incidentId);
}

/**
 * Anyone who may read an incident may end a role in it.
 *
 * @throws NotFound also for an incident that the actor may not read
 * @throws Conflict
 */
export async function renounceRole(
  context: PluginContext,
  actor: Actor,
  wanted: Pick<Renunciation, "incidentId" | "participantId" | "role">,
): Promise<Participant> {
  return changeParticipant(context, actor, wanted.incidentId, async (tx, change) => {
    await renounce(tx, { ...wanted, ...change });
    return wanted.participantId;
  });
}
