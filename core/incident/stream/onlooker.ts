import { and, eq, sql } from "drizzle-orm";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import {
  accessLease,
  document,
  incident,
  incidentLink,
  individual,
  participant,
  recommendation,
} from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { otherOf } from "../link/link.ts";
import { noSuchIncident } from "../visibility/see.ts";
import { anyReader, mayReadIncident } from "../visibility/visibility.ts";
import { tail } from "./read.ts";

/**
 * Whether a member sees of this incident what every member does: it is Open, with links and proposed documents of Open ones
 * only, and they have neither taken part in it nor access for it. `tail` is the id of its newest event.
 *
 * @throws NotFound when they may not read it
 */
export async function findOnlooker(
  { db }: Pick<Context, "db">,
  { user: reader }: Pick<Actor, "user">,
  id: number,
): Promise<{ tail: number; isOnlooker: boolean }> {
  const [found] = await query(db).execute({ id, reader });
  if (!found) throw noSuchIncident();
  return found;
}

const member = anyReader(false);

const query = preparedQuery((db) => {
  const { id } = incident;
  return db
    .select({
      tail,
      // Nested, because drizzle would otherwise drop the columns' table names.
      isOnlooker: sql<boolean>`${sql`${incident.visibility} = 'Open'
        and not exists (
          select from ${participant} join ${individual} on ${individual.id} = ${participant.individualId}
          where ${participant.incidentId} = ${id} and ${individual.email} = ${member.user})
        and not exists (
          select from ${incidentLink} join ${incident} as other on other.id = ${otherOf(id)}
          where (${incidentLink.incidentId} = ${id} or ${incidentLink.linkedId} = ${id}) and other.visibility <> 'Open')
        and not exists (
          select from ${recommendation} join ${document} on ${document.id} = ${recommendation.documentId}
          join ${incident} as other on other.id = ${document.incidentId}
          where ${recommendation.incidentId} = ${id} and other.visibility <> 'Open')
        and not exists (
          select from ${accessLease} where ${accessLease.userName} = ${member.user}
            and ${accessLease.incidentId} = ${id} and ${accessLease.finishedAt} is null)`}`,
    })
    .from(incident)
    .where(and(eq(id, sql.placeholder("id")), mayReadIncident(member)))
    .prepare("onlooker");
});
