import { incident, participant, participantRole } from "../../../drizzle/schema/index.ts";
import { together } from "../../../drizzle/together.ts";
import { parseUserName } from "../../auth/user/field.ts";
import { makeAsNew } from "../../catalog/person/as_new.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { planFlow } from "../flow/plan.ts";
import {
  findIncident,
  type Incident,
  type IncidentText,
  lockKind,
  parseIncident,
  type Visibility,
} from "../incident/incident.ts";
import { join } from "../participant/join.ts";
import type { ParticipantRole } from "../participant/participant.ts";
import { individualsOf } from "../task/people.ts";
import { recordEvent } from "../timeline/event.ts";

export interface NewIncident extends IncidentText {
  /** User names of people who take part from the start. A person whom nobody knows becomes an individual. */
  commander?: string;
  participants?: readonly string[];
  incidentTypeId: number;
  incidentPriorityId: number;
  /** The type's by default. */
  visibility?: Visibility;
}

/**
 * Opens an incident with its reporter as the first participant. What follows (participants, documents, conversation) is
 * planned in the same transaction and done afterwards: `core/incident/steps`.
 *
 * @throws InvalidInput also for a type or priority that does not exist
 */
export async function reportIncident(
  { db, clock, config, plugins }: AppContext,
  actor: Actor,
  wanted: NewIncident,
): Promise<Incident> {
  const { incidentTypeId, incidentPriorityId } = wanted;
  const text = parseIncident(wanted);
  const commander =
    wanted.commander === undefined ? undefined : parseUserName("commander", wanted.commander, config.domain);
  const others = (wanted.participants ?? []).map((user) =>
    parseUserName("participants", user, config.domain),
  );
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
    const people = [...others, ...(commander === undefined ? [] : [commander])];
    const individuals = await individualsOf(tx, [actor.user, ...people], at);
    const invited = [...individuals].filter(([user]) => user !== actor.user).map(([, id]) => id);
    // People whom the actor may not know of are handled as if they were new.
    await makeAsNew(tx, actor, invited, at);
    const individualId = individuals.get(actor.user)!;
    const [reporter] = await tx
      .insert(participant)
      .values({ incidentId, individualId, joinedAt: at })
      .returning({ id: participant.id });
    const participantId = reporter!.id;
    await together([
      tx.insert(participantRole).values({ participantId, incidentId, role: "reporter", assumedAt: at }),
      recordEvent(tx, {
        incidentId,
        at,
        actor: actor.user,
        kind: "incident.reported",
        description: `${name} reported: ${text.title}`,
        data: { participant_id: participantId },
      }),
    ]);
    for (const user of new Set(people)) {
      const roles = participationOf(user, { reporter: actor.user, commander });
      // The welcome message names the first commander, so nothing is announced here.
      await join(tx, { incidentId, individualId: individuals.get(user)!, roles, at, actor: actor.user });
    }
    const [found] = await together([
      findIncident(tx, actor, incidentId),
      planFlow(tx, { incidentId, at, plugins }),
    ]);
    return found!;
  });
}

function participationOf(
  user: string,
  { reporter, commander }: { reporter: string; commander: string | undefined },
): ParticipantRole[] {
  // The reporter takes part already.
  const roles: ParticipantRole[] = user === reporter ? [] : ["participant"];
  return user === commander ? [...roles, "commander"] : roles;
}
