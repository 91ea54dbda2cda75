import { and, eq, getTableColumns, gt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { conversationMessage, document, event, statusReport } from "../../../drizzle/schema/index.ts";
import { nameLength, parseText } from "../../../platform/text.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import type { AnyReader, IncidentRef, Reader } from "../visibility/visibility.ts";

export type Event = Omit<typeof event.$inferSelect, "search">;

export interface EventQuery extends ListQuery {
  incidentId: number;
  kind?: string;
  /** Only events with a larger id, in that order unless `sort` says otherwise: what a reader of this event missed. */
  after?: number;
  /** The id of an event: only this one, and those before it by time. */
  upTo?: number;
}

const events: List<"at" | "id"> = {
  name: "events",
  id: event.id,
  sorts: { at: { by: event.at, kind: "instant" }, id: { by: event.id, kind: "id" } },
  defaultSort: "-at",
};

/**
 * Returns a page of an incident's timeline, newest first.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput
 */
export async function listEvents(
  context: Context,
  actor: Actor,
  query: EventQuery,
): Promise<{ items: Event[]; next_cursor: string | null }> {
  const { incidentId, after, upTo, sort = after === undefined ? undefined : "id" } = query;
  const kind = query.kind && parseText("kind", query.kind, nameLength);
  await seeIncident(context, actor, incidentId);
  const page = startPage(events, { ...query, sort }, { incidentId, kind, after, upTo });
  const select = (reader: Reader | AnyReader, of: IncidentRef) =>
    context.db
      .select({ item: eventColumns, key: page.key })
      .from(event)
      .where(
        page.within(
          and(
            eq(event.incidentId, of),
            maySee(reader, of),
            kind === undefined ? undefined : eq(event.kind, kind),
            after === undefined ? undefined : gt(event.id, after),
            upTo === undefined ? undefined : isUpTo(incidentId, upTo),
          ),
        ),
      )
      .orderBy(...page.orderBy)
      .limit(page.limit);
  return page.finish(await page.run(context.db, actor, select));
}

/** By values of their own, so that PostgreSQL finds the place in the index. */
const isUpTo = (of: number, id: number) =>
  sql`(${event.at}, ${event.id}) <= (
    (select e.at from ${event} as e where e.id = ${id} and e.incident_id = ${of}), ${id}::bigint)`;

const { id, incidentId } = document;

/**
 * Whether a line proposes a document that must no longer be shown. Older lines also name documents of other incidents,
 * which may be Restricted now. They look like deleted ones, so that a reader cannot tell that they exist.
 */
const proposesHidden = sql`${event.kind} = 'document.proposed' and not exists (
  select from ${document} where ${id} = (${event.data}->>'document_id')::bigint
    and (${incidentId} is null or ${incidentId} = ${event.incidentId}))`;

/**
 * The text of a status report, or of a message, which is stored only there. Null for other events, and for a withdrawn or
 * redacted one, whose description says so.
 */
const saidTextOf = ({ kind, data, incidentId, withdrawnAt, redactedAt }: typeof event | typeof target) =>
  sql`case when ${withdrawnAt} is null and ${redactedAt} is null then case ${kind}
  when 'report.written' then (
    select concat_ws(E'\\n', 'Status report:', 'Conditions: ' || nullif(${statusReport.conditions}, ''),
      'Actions: ' || nullif(${statusReport.actions}, ''), 'Needs: ' || nullif(${statusReport.needs}, ''))
    from ${statusReport} where ${statusReport.id} = (${data}->>'report_id')::bigint
      and ${statusReport.incidentId} = ${incidentId})
  when 'message.sent' then (
    select ${conversationMessage.text} from ${conversationMessage}
    where ${conversationMessage.id} = (${data}->>'message_id')::bigint
      and ${conversationMessage.recipientId} is null)
  end end`;

const target = alias(event, "target");

/** The current text of what an event corrects, which is stored only there. Null for other events. */
const correctedText = sql`case ${event.kind} when 'corrected' then (
  select coalesce(${saidTextOf(target)}, ${target.description}) from ${event} as "target"
  where ${target.id} = (${event.data}->>'target_id')::bigint and ${target.incidentId} = ${event.incidentId})
  end`;

const { search: _, ...shown } = getTableColumns(event);

/** The visible columns of an event, whenever it was written. The timeline itself is never rewritten. */
export const eventColumns = {
  ...shown,
  // Nested, because drizzle would otherwise drop the columns' table names.
  description: sql<string>`${sql`case when ${proposesHidden} then 'Document proposed: a deleted document'
    else coalesce(${saidTextOf(event)}, ${correctedText}, ${event.description}) end`}`,
  data: sql`${sql`case when ${proposesHidden} then ${event.data} - 'document_id' else ${event.data} end`}`.mapWith(
    event.data,
  ),
};
