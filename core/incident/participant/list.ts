import { and, eq, sql } from "drizzle-orm";
import { individual, participant } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import type { AnyReader, IncidentRef, Reader } from "../visibility/visibility.ts";
import { type Participant, participantColumns } from "./participant.ts";

export interface ParticipantQuery extends ListQuery {
  incidentId: number;
  /** True for current participants, false for former ones. Both by default. */
  active?: boolean;
  /** A canonical user name. */
  email?: string;
}

const participants: List<"id"> = {
  name: "participants",
  id: participant.id,
  sorts: { id: { by: participant.id, kind: "id" } },
  defaultSort: "id",
};

/**
 * Returns a page of an incident's participants, in the order in which they joined.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput
 */
export async function listParticipants(
  context: Context,
  actor: Actor,
  query: ParticipantQuery,
): Promise<{ items: Participant[]; next_cursor: string | null }> {
  const { incidentId, active, email } = query;
  await seeIncident(context, actor, incidentId);
  const page = startPage(participants, query, { incidentId, active: active?.toString(), email });
  const select = (reader: Reader | AnyReader, of: IncidentRef) =>
    context.db
      .select({ ...participantColumns, key: page.key })
      .from(participant)
      .innerJoin(individual, eq(individual.id, participant.individualId))
      .where(
        page.within(
          and(
            eq(participant.incidentId, of),
            maySee(reader, of),
            active === undefined ? undefined : sql`(${participant.leftAt} is null) = ${active}`,
            email === undefined ? undefined : eq(individual.email, email),
          ),
        ),
      )
      .orderBy(...page.orderBy)
      .limit(page.limit);
  const rows = await page.run(context.db, actor, select);
  return page.finish(rows.map(({ key, ...item }) => ({ item, key })));
}
