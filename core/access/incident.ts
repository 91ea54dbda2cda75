import { and, eq, isNull, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { incident, individual, participant, participantRole } from "../../drizzle/schema/index.ts";
import { Conflict, InvalidInput } from "../../platform/errors.ts";
import type { Actor } from "../context.ts";
import { mayReadIncident } from "../incident/visibility/visibility.ts";

/** What access is for. */
export interface IncidentOfAccess {
  incidentId: number | null;
  /** It stays when the incident is deleted. */
  incidentName: string | null;
  /** Whether the actor takes part in it: then the access ends when they no longer do. */
  asParticipant: boolean;
}

/**
 * The incident that access is for.
 *
 * @throws InvalidInput when there is none that the actor may read
 * @throws Conflict when it is Closed
 */
export async function incidentOfAccess(
  tx: Transaction,
  actor: Actor,
  name: string,
): Promise<IncidentOfAccess> {
  const part = sql<boolean>`exists (select from ${participant}
    where ${participant.incidentId} = ${incident.id} and ${takesPart(sql`${actor.user}`)})`;
  const [found] = await tx
    .select({ id: incident.id, name: incident.name, status: incident.status, part: sql<boolean>`${part}` })
    .from(incident)
    .where(and(eq(incident.name, name), mayReadIncident(actor)));
  if (!found) throw new InvalidInput("incident", "There is no such incident");
  if (found.status === "Closed") throw new Conflict(`${found.name} is Closed`);
  return { incidentId: found.id, incidentName: found.name, asParticipant: found.part };
}

/** Of a row of `participant`: it is this user's, who takes part now. */
export function takesPart(user: SQL): SQL {
  return and(
    isNull(participant.leftAt),
    sql`exists (select from ${individual} where ${individual.id} = ${participant.individualId}
      and ${individual.email} = ${user})`,
  )!;
}

/** Whether this user commands the incident now. */
export function commands(user: SQL, incidentId: SQL): SQL {
  return sql`exists (
    select from ${participantRole} join ${participant} on ${participant.id} = ${participantRole.participantId}
    where ${participantRole.incidentId} = ${incidentId} and ${participantRole.role} = 'commander'
      and ${participantRole.renouncedAt} is null and ${takesPart(user)})`;
}
