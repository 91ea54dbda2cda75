import { and, eq, isNotNull, isNull, sql } from "drizzle-orm";
import { union } from "drizzle-orm/pg-core";
import {
  incident,
  individual,
  participant,
  participantGroup,
  participantGroupMember,
  team,
} from "../../drizzle/schema/index.ts";
import type { Context } from "../context.ts";
import { mayBeToldOf } from "../incident/visibility.ts";

/** The plugin whose groups are kept here. */
export const mailingListSlug = "mailing-list";

/**
 * Where mail to an incident goes, each address once: to those who take part now, and to the teams of its mailing list. A
 * team's address reaches people who take no part, so what is Restricted does not go there.
 */
export async function addressesOf({ db }: Context, incidentId: number): Promise<string[]> {
  const rows = await union(
    db
      .select({ email: individual.email })
      .from(participant)
      .innerJoin(individual, eq(individual.id, participant.individualId))
      .where(and(eq(participant.incidentId, incidentId), isNull(participant.leftAt))),
    db
      .select({ email: sql<string>`${team.email}` })
      .from(participantGroupMember)
      .innerJoin(participantGroup, eq(participantGroup.id, participantGroupMember.participantGroupId))
      .innerJoin(incident, eq(incident.id, participantGroup.incidentId))
      .innerJoin(team, eq(team.id, participantGroupMember.teamId))
      .where(
        and(
          eq(participantGroup.incidentId, incidentId),
          eq(participantGroup.pluginSlug, mailingListSlug),
          eq(incident.visibility, "Open"),
          isNotNull(team.email),
        ),
      ),
  );
  return rows.map(({ email }) => email).sort();
}

/** Whether what is said of an incident may go to this person alone: of a Restricted one, to who takes part. */
export async function mayBeTold({ db }: Context, incidentId: number, individualId: number): Promise<boolean> {
  return (await db.$count(incident, and(eq(incident.id, incidentId), mayBeToldOf(individualId)))) > 0;
}
