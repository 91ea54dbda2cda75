import { type SQL, sql } from "drizzle-orm";
import { incident, individual, participant, participantRole } from "../../../drizzle/schema/index.ts";
import { type Person, personJson } from "../../catalog/person/person.ts";

/** Who reported an incident, even if they have left. Like the next one, a column of a SELECT from `incident`. */
export const reporterOf = holderOf(sql`${participantRole.role} = 'reporter'
  order by ${participantRole.id} limit 1`);

/**
 * The current commander: `participant_role_one_commander_idx` guarantees that there is one at most. Without an order and
 * a limit, a page of 50 incidents takes a third less time for it.
 */
export const commanderNow = holderOf(
  sql`${participantRole.role} = 'commander' and ${participantRole.renouncedAt} is null`,
);

/** The person with this role, of whom `role` must leave one. */
function holderOf(role: SQL): SQL<Person | null> {
  return sql`(
    select ${personJson} from ${participantRole}
    join ${participant} on ${participant.id} = ${participantRole.participantId}
    join ${individual} on ${individual.id} = ${participant.individualId}
    where ${participantRole.incidentId} = ${incident.id} and ${role})`;
}
