import type { Actor } from "../../core/context.ts";
import { getAffected } from "../../core/incident/affected/affected.ts";
import { getContent } from "../../core/incident/document/content.ts";
import { listDocuments } from "../../core/incident/document/list.ts";
import { listEvents } from "../../core/incident/event/list.ts";
import {
  type ExportedContent,
  type ExportedIncident,
  type ExportFormat,
  exported,
} from "../../core/incident/export/file.ts";
import { getIncident } from "../../core/incident/incident/get.ts";
import { listLinks } from "../../core/incident/link/list.ts";
import { listMessages } from "../../core/incident/message/list.ts";
import { listParticipants } from "../../core/incident/participant/list.ts";
import { listReports } from "../../core/incident/report/list.ts";
import { listTasks } from "../../core/incident/task/list.ts";
import { type ListQuery, largestLimit } from "../../core/list/page.ts";
import type { AppContext } from "../../core/plugin/context.ts";
import { Conflict, NotFound, Unavailable } from "../../platform/errors.ts";
import { toApi } from "../../platform/names.ts";
import { viewOf } from "../../server/event/model.ts";

/** The media types of the files. */
export const exportTypes = {
  md: "text/markdown",
  html: "text/html",
  json: "application/json",
} satisfies Record<ExportFormat, string>;

/**
 * The file that `svc incident export` writes, read from the database piece by piece.
 *
 * @throws NotFound when the actor may not read the incident, also while the pieces are read
 */
export async function exportIncident(
  context: AppContext,
  actor: Actor,
  { id, format }: { id: number; format: ExportFormat },
): Promise<{ name: string; pieces: AsyncGenerator<string> }> {
  const of = { incidentId: id };
  const [incident, affected, documents] = await Promise.all([
    getIncident(context, actor, id),
    getAffected(context, actor, id),
    Array.fromAsync(all((page) => listDocuments(context, actor, { ...of, ...page, sort: "id" }), toApi)),
  ]);
  const parts: ExportedIncident = {
    incident: toApi(incident),
    affected,
    documents,
    participants: all((page) => listParticipants(context, actor, { ...of, ...page }), toApi),
    links: all((page) => listLinks(context, actor, { ...of, ...page }), toApi),
    reports: all((page) => listReports(context, actor, { ...of, ...page, sort: "created_at" }), toApi),
    tasks: all((page) => listTasks(context, actor, { ...of, ...page, sort: "id" }), toApi),
    messages: all((page) => listMessages(context, actor, { ...of, ...page, sort: "at" }), toApi),
    events: all((page) => listEvents(context, actor, { ...of, ...page, sort: "at" }), viewOf),
    contentOf: (document) => contentOf(context, actor, document.id),
  };
  return { name: `${incident.name}.${format}`, pieces: exported(parts, format) };
}

/** The items of all pages of a list. */
async function* all<T, View>(
  list: (page: ListQuery) => Promise<{ items: T[]; next_cursor: string | null }>,
  view: (item: T) => View,
): AsyncGenerator<View> {
  let cursor: string | undefined;
  do {
    const { items, next_cursor } = await list({ limit: largestLimit, cursor });
    for (const item of items) yield view(item);
    cursor = next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/** One text that cannot be read does not spoil the rest of an export, but the file says so. */
async function contentOf(context: AppContext, actor: Actor, id: number): Promise<ExportedContent> {
  try {
    return { content: await getContent(context, actor, id) };
  } catch (error) {
    // It has none, such as a link.
    if (error instanceof Conflict) return { content: null };
    if (!(error instanceof NotFound || error instanceof Unavailable)) throw error;
    return { content: null, content_error: error.detail };
  }
}
