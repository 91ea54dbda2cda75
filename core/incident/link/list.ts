import { and, eq, or, sql } from "drizzle-orm";
import { incident, incidentLink } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import { type AnyReader, type IncidentRef, mayReadIncident, type Reader } from "../visibility/visibility.ts";
import { type Link, otherOf } from "./link.ts";

const links: List<"id"> = {
  name: "links",
  id: incidentLink.id,
  sorts: { id: { by: incidentLink.id, kind: "id" } },
  defaultSort: "id",
};

/**
 * Returns a page of the incidents that are linked with this one, without those that the actor may not read.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput
 */
export async function listLinks(
  context: Context,
  actor: Actor,
  query: ListQuery & { incidentId: number },
): Promise<{ items: Link[]; next_cursor: string | null }> {
  const { incidentId } = query;
  await seeIncident(context, actor, incidentId);
  const page = startPage(links, query, { incidentId });
  const { id, name, title, status } = incident;
  const select = (reader: Reader | AnyReader, of: IncidentRef) =>
    context.db
      .select({
        id: incidentLink.id,
        kind: sql<Link["kind"]>`case when ${incidentLink.kind} = 'related' then 'related'
          when ${incidentLink.incidentId} = ${of} then 'duplicate_of' else 'duplicated_by' end`,
        incident: { id, name, title, status },
        createdAt: incidentLink.createdAt,
        key: page.key,
      })
      .from(incidentLink)
      .innerJoin(incident, eq(incident.id, otherOf(of)))
      .where(
        page.within(
          and(
            or(eq(incidentLink.incidentId, of), eq(incidentLink.linkedId, of)),
            mayReadIncident(reader),
            maySee(reader, of),
          ),
        ),
      )
      .orderBy(...page.orderBy)
      .limit(page.limit);
  const rows = await page.run(context.db, actor, select);
  return page.finish(rows.map(({ key, ...item }) => ({ item, key })));
}
