import { and, eq } from "drizzle-orm";
import { event } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { nameLength, parseText } from "../../../platform/text.ts";
import { eventColumns } from "./shown.ts";

export type Event = typeof event.$inferSelect;

export interface EventQuery extends ListQuery {
  incidentId: number;
  kind?: string;
}

const events: List<"at"> = {
  name: "events",
  id: event.id,
  sorts: { at: { by: event.at, kind: "instant" } },
  defaultSort: "-at",
};

/**
 * One page of an incident's timeline, the newest first.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput
 */
export async function listEvents(
  context: Context,
  actor: Actor,
  query: EventQuery,
): Promise<{ items: Event[]; next_cursor: string | null }> {
  const { incidentId } = query;
  const kind = query.kind && parseText("kind", query.kind, nameLength);
  await seeIncident(context, actor, incidentId);
  const page = startPage(events, query, { incidentId, kind });
  const rows = await context.db
    .select({ item: eventColumns, key: page.key })
    .from(event)
    .where(
      page.within(
        and(
          eq(event.incidentId, incidentId),
          maySee(actor, incidentId),
          kind === undefined ? undefined : eq(event.kind, kind),
        ),
      ),
    )
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows);
}
