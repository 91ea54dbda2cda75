import { and, eq, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { incident, individual, participant, participantRole } from "../../drizzle/schema/index.ts";
import { Conflict, InvalidInput } from "../../platform/errors.ts";
import type { Actor } from "../context.ts";
import { mayReadIncident } from "../incident/visibility/visibility.ts";

/** The incident that access is requested for, if any. */
export interface IncidentOfAccess {
  incidentId: number | null;
  /** Kept when the incident is deleted. */
  incidentName: string | null;
  /** Whether the actor is a participant. If so, the access ends when they leave the incident. */
  asParticipant: boolean;
}

/**
 * Resolves the name of the incident that access is requested for.
 *
 * @throws InvalidInput when no incident that the actor may read has this name
 * @throws Conflict when the incident is Closed
 */
export async function incidentOfAccess(
  tx: Transaction,
  actor: Actor,
  name: string,
): Promise<IncidentOfAccess> {
  const part = sql<boolean>`exists (select from ${participant}
    join ${individual} on ${individual.id} = ${participant.individualId}
    where ${participant.incidentId} = ${incident.id} and ${participant.leftAt} is null
      and ${individual.email} = ${actor.user})`;
  const [found] = await tx
    // Nested, because drizzle would otherwise drop the columns' table names.
    .select({ id: incident.id, name: incident.name, status: incident.status, part: sql<boolean>`${part}` })
    .from(incident)
    .where(and(eq(incident.name, name), mayReadIncident(actor)))
    // It must not be deleted before a row refers to it.
    .for("key share", { of: incident });
  if (!found) throw new InvalidInput("incident", "There is no such incident");
  if (found.status === "Closed") throw new Conflict(`${found.name} is Closed`);
  return { incidentId: found.id, incidentName: found.name, asParticipant: found.part };
}

/** The individual who currently commands the incident, as a subquery. */
export const commanderOf = (incidentId: number) => sql`(
  select ${participant.individualId}
  from ${participantRole} join ${participant} on ${participant.id} = ${participantRole.participantId}
  where ${participantRole.incidentId} = ${incidentId} and ${participantRole.role} = 'commander'
    and ${participantRole.renouncedAt} is null and ${participant.leftAt} is null)`;

/** The ids of the incidents that the user currently commands, as an array. */
export const commandedBy = ({ user }: Actor) => sql`array(
  select ${participantRole.incidentId}
  from ${individual} join ${participant} on ${participant.individualId} = ${individual.id}
  join ${participantRole} on ${participantRole.participantId} = ${participant.id}
  where ${individual.email} = ${user} and ${participant.leftAt} is null
    and ${participantRole.role} = 'commander' and ${participantRole.renouncedAt} is null)`;
