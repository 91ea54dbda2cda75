import { and, asc, eq, isNotNull, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { individual, participant, recommendation, team } from "../../../drizzle/schema/index.ts";
import { nameLength, parseText } from "../../../platform/text.ts";
import { canonicalUserName } from "../../auth/user/name.ts";
import { personColumns } from "../../catalog/person/person.ts";
import type { PersonFacts, TeamFacts } from "../../plugin/facts.ts";

/** The current and former participants of an incident. */
export interface People {
  active: PersonFacts[];
  /** Those who have left and not come back. */
  left: PersonFacts[];
  /** The ids of their participations. Somebody who comes back has a new one. */
  participations: { active: number[]; left: number[] };
}

/** Read with the incident locked: somebody who joins later finds the reading step running. */
export async function peopleOf(tx: Transaction, incidentId: number): Promise<People> {
  const rows = await peopleQuery(tx).execute({ incidentId });
  const active = rows.filter(({ leftAt }) => leftAt === null);
  const activeIds = new Set(active.map(({ person }) => person.id));
  const left = rows.filter(({ person }) => !activeIds.has(person.id));
  const ids = (some: typeof rows) => some.map(({ participation }) => participation);
  return {
    active: active.map(({ person }) => person),
    left: [...new Map(left.map(({ person }) => [person.id, person])).values()],
    participations: { active: ids(active), left: ids(left) },
  };
}

const peopleQuery = preparedQuery((tx) =>
  tx
    .select({ participation: participant.id, leftAt: participant.leftAt, person: personColumns })
    .from(participant)
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(eq(participant.incidentId, sql.placeholder("incidentId")))
    .orderBy(asc(participant.id))
    .prepare("people"),
);

/** The proposed teams of an incident. */
export async function teamsOf(tx: Transaction, incidentId: number): Promise<TeamFacts[]> {
  const rows = await teamsQuery(tx).execute({ incidentId });
  return rows.map(({ id, name, email }) => ({ id, name, ...(email !== null && { email }) }));
}

const teamsQuery = preparedQuery((tx) =>
  tx
    .selectDistinct({ id: team.id, name: team.name, email: team.email })
    .from(recommendation)
    .innerJoin(team, eq(team.id, recommendation.teamId))
    .where(
      and(eq(recommendation.incidentId, sql.placeholder("incidentId")), isNotNull(recommendation.teamId)),
    )
    .orderBy(asc(team.id))
    .prepare("proposed_teams"),
);

/**
 * Parses a person whom a plugin names by address, for `individualOf`.
 * @throws InvalidInput for an invalid address or name
 */
export function parsePerson(person: { email: string; name?: string }): { user: string; name?: string } {
  const user = canonicalUserName(person.email);
  const name = person.name && oneLine(parseText("name", person.name, nameLength));
  return { user, name: name || undefined };
}

function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\s]+/gu, " ").trim();
}
