import { incident, participant, participantRole } from "../../../drizzle/schema/index.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import type { Actor } from "../../context.ts";
import type { PluginContext } from "../../plugin/context.ts";
import { planFlow } from "../flow/plan.ts";
import {
  findIncident,
  type Incident,
  type IncidentText,
  lockKind,
  parseIncident,
  type Visibility,
} from "../incident/incident.ts";
import { recordEvent } from "../timeline/event.ts";

export interface NewIncident extends IncidentText {
  incidentTypeId: number;
  incidentPriorityId: number;
  /** The type's by default. */
  visibility?: Visibility;
}

/**
 * Opens an incident with its reporter as the first participant. What follows (participants, documents, conversation) is
 * planned in the same transaction and done afterwards: `core/incident/flow`.
 *
 * @throws InvalidInput also for a type or priority that does not exist
 */
export async function reportIncident(
  { db, clock, plugins }: PluginContext,
  actor: Actor,
  wanted: NewIncident,
): Promise<Incident> {
  const { incidentTypeId, incidentPriorityId } = wanted;
  const text = parseIncident(wanted);
  const at = clock.now();
  return db.transaction(async (tx) => {
    const { visibility } = await lockKind(tx, wanted);
    const values = { ...text, incidentTypeId, incidentPriorityId };
    const stamps = { reportedAt: at, createdAt: at, updatedAt: at };
    const [reported] = await tx
      .insert(incident)
      .values({ ...values, visibility: wanted.visibility ?? visibility, ...stamps })
      .returning({ id: incident.id, name: incident.name });
    const { id: incidentId, name } = reported!;
    const individualId = await individualOf(tx, actor, at);
    const [reporter] = await tx
      .insert(participant)
      .values({ incidentId, individualId, joinedAt: at })
      .returning({ id: participant.id });
    const participantId = reporter!.id;
    await tx.insert(participantRole).values({ participantId, incidentId, role: "reporter", assumedAt: at });
    await recordEvent(tx, {
      ...{ incidentId, at, actor: actor.user, kind: "incident.reported" },
      ...{ description: `${name} reported: ${text.title}`, data: { participant_id: participantId } },
    });
    await planFlow(tx, { incidentId, at, plugins });
    return (await findIncident(tx, actor, incidentId))!;
  });
}
