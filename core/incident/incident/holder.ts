import { type SQL, sql } from "drizzle-orm";
import { incident, individual, participant, participantRole } from "../../../drizzle/schema/index.ts";
import type { Person } from "../../catalog/person/person.ts";

/** Who reported an incident, also when they have left. A column of a SELECT from `incident`, as the next one. */
export const reporterOf = holderOf(sql`${participantRole.role} = 'reporter'`);

/** Who commands now. */
export const commanderNow = holderOf(
  sql`${participantRole.role} = 'commander' and ${participantRole.renouncedAt} is null`,
);

/** Whoever assumed such a role first. */
function holderOf(role: SQL): SQL<Person | null> {
  return sql`(
    select json_build_object('id', ${individual.id}, 'name', ${individual.name}, 'email', ${individual.email})
    from ${participantRole}
    join ${participant} on ${participant.id} = ${participantRole.participantId}
    join ${individual} on ${individual.id} = ${participant.individualId}
    where ${participantRole.incidentId} = ${incident.id} and ${role}
    order by ${participantRole.id} limit 1)`;
}
