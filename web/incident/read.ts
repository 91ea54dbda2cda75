import { type Lease, listLeases } from "../../core/access/lease.ts";
import type { Actor } from "../../core/context.ts";
import { type Affected, getAffected } from "../../core/incident/affected/affected.ts";
import type { Document } from "../../core/incident/document/document.ts";
import { listDocuments } from "../../core/incident/document/list.ts";
import { type EventIds, getEvent } from "../../core/incident/event/get.ts";
import { type Event, listEvents } from "../../core/incident/event/list.ts";
import { getIncident, type IncidentDetail } from "../../core/incident/incident/get.ts";
import type { Link } from "../../core/incident/link/link.ts";
import { listLinks } from "../../core/incident/link/list.ts";
import { listMessages } from "../../core/incident/message/list.ts";
import type { Message } from "../../core/incident/message/message.ts";
import { listParticipants } from "../../core/incident/participant/list.ts";
import type { Participant } from "../../core/incident/participant/participant.ts";
import { listReports } from "../../core/incident/report/list.ts";
import type { Report } from "../../core/incident/report/report.ts";
import { listTasks } from "../../core/incident/task/list.ts";
import type { Task } from "../../core/incident/task/task.ts";
import { pageLimit } from "../../core/list/page.ts";
import type { AppContext } from "../../core/plugin/context.ts";

/** What the timeline shows. */
export const views = ["timeline", "reports", "notes", "messages", "everything"] as const;
export type View = (typeof views)[number];

const kinds: Partial<Record<View, string>> = { reports: "report.written", notes: "note" };

/** Everything that the page of an incident shows. */
export interface IncidentPage {
  incident: IncidentDetail;
  view: View;
  /** It does not begin with the newest events, but with this one, or with those after a cursor. */
  isOlder: boolean;
  at: number | undefined;
  /** The newest first. */
  events: Event[];
  /** Of older events or messages. */
  next: string | null;
  /** For the view of messages: those to the reader alone are not in the timeline. */
  messages: Message[] | undefined;
  /** By id, as far as events of the page refer to them. */
  reports: ReadonlyMap<number, Report>;
  /** Also those who have left. */
  people: Participant[];
  areMorePeople: boolean;
  /** The reader's own participation. */
  mine: Participant | undefined;
  tasks: Task[];
  documents: Document[];
  links: Link[];
  affected: Affected;
  /** Those that the reader may see, and that have not ended. */
  leases: Lease[];
}

/** Whether an entry is among those that the page begins with. @throws NotFound also when there is no such entry */
export async function isAmongNewest(context: AppContext, actor: Actor, ids: EventIds): Promise<boolean> {
  const { items } = await listEvents(context, actor, {
    incidentId: ids.incidentId,
    limit: pageLimit,
    sort: "-at",
  });
  if (items.some(({ id }) => id === ids.eventId)) return true;
  await getEvent(context, actor, ids);
  return false;
}

/** @throws NotFound when the actor may not read it */
export async function readIncidentPage(
  context: AppContext,
  reader: Actor,
  { id, view, cursor, at }: Pick<IncidentPage, "view" | "at"> & { id: number; cursor: string | undefined },
): Promise<IncidentPage> {
  const actor = { ...reader, sees: id };
  const of = { incidentId: id };
  const page = { ...of, cursor, limit: pageLimit };
  const all = { ...of, limit: pageLimit };
  const [incident, timeline, messages, reports, people, tasks, documents, links, affected] =
    await Promise.all([
      getIncident(context, actor, id),
      view === "messages"
        ? undefined
        : listEvents(context, actor, { ...page, kind: kinds[view], upTo: at, sort: "-at" }),
      view === "messages" ? listMessages(context, actor, page) : undefined,
      listReports(context, actor, all),
      listParticipants(context, actor, all),
      listTasks(context, actor, all),
      listDocuments(context, actor, all),
      listLinks(context, actor, all),
      getAffected(context, actor, id),
    ]);
  const leases = await listLeases(context, actor, { incident: incident.name, limit: pageLimit });
  const isMine = ({ individual, leftAt }: Participant) => individual.email === actor.user && leftAt === null;
  const own = { ...of, active: true, email: actor.user, limit: 1 };
  const mine =
    people.items.find(isMine) ??
    (people.next_cursor === null ? undefined : (await listParticipants(context, actor, own)).items[0]);
  return {
    incident,
    view,
    isOlder: (cursor ?? at) !== undefined,
    at,
    events: timeline?.items ?? [],
    next: (timeline ?? messages)?.next_cursor ?? null,
    messages: messages?.items,
    reports: new Map(reports.items.map((report) => [report.id, report])),
    people: people.items,
    areMorePeople: people.next_cursor !== null,
    mine,
    tasks: tasks.items,
    documents: documents.items,
    links: links.items,
    affected,
    leases: leases.items.filter(({ finishedAt }) => finishedAt === null),
  };
}
