import { Elysia } from "elysia";
import { type Actor, requireAdmin } from "../../core/context.ts";
import { listRevisions } from "../../core/incident/event/revisions.ts";
import { exportFormats } from "../../core/incident/export/file.ts";
import { getIncident } from "../../core/incident/incident/get.ts";
import { idOfName, isIncidentName } from "../../core/incident/incident/name.ts";
import { listParticipants } from "../../core/incident/participant/list.ts";
import { readSlice } from "../../core/incident/stream/read.ts";
import { noSuchIncident } from "../../core/incident/visibility/see.ts";
import { slugPattern } from "../../core/plugin/check.ts";
import { NotFound, noRoute } from "../../platform/errors.ts";
import { redirect } from "../../server/page/page.ts";
import { streamHeaders } from "../../server/stream/connection.ts";
import { withoutTimeout } from "../../server/stream/routes.ts";
import type { IncidentStreams } from "../../server/stream/streams.ts";
import { download } from "../download.ts";
import { ActionPage, HistoryPage, RemainsPage } from "../pages/forms.tsx";
import { Incident } from "../pages/incident.tsx";
import { app, incidentPath } from "../paths.ts";
import { idIn, type PageContent, type Site, type Visit } from "../site.tsx";
import { Values } from "../values.ts";
import { type Action, actions, type Place } from "./actions.ts";
import { barsOf, rankedPriorities } from "./choices.ts";
import { exportIncident, exportTypes } from "./export.ts";
import { Onlookers, type Rendered } from "./onlookers.tsx";
import { isAmongNewest, readIncidentPage, views } from "./read.ts";
import { readDocuments } from "./redaction.ts";

/** The page of an incident, its stream, and what one can do with it. */
export const incidentPages = (site: Site, streams: IncidentStreams) => {
  const { deps } = site;

  async function incidentPage({ visitor, url, params }: Visit): Promise<PageContent | Response> {
    const { actor } = visitor;
    const named = params.incident_id ?? "";
    if (isIncidentName(named)) return redirect(incidentPath(await idOfName(deps, named)));
    const id = idOf(params);
    const view = views.find((one) => one === url.searchParams.get("show")) ?? "timeline";
    const cursor = url.searchParams.get("cursor") ?? undefined;
    const at = idIn(url.searchParams.get("at"));
    // The page with the newest ones is live.
    if (at !== undefined && !cursor && (await isAmongNewest(deps, actor, { incidentId: id, eventId: at })))
      return redirect(`${incidentPath(id)}#event-${at}`);
    const isUsual = view === "timeline" && !cursor && at === undefined;
    const shared = isUsual ? await onlookers.pageOf(visitor, id) : undefined;
    return shared ?? rendered(actor, { id, view, cursor, at });
  }

  async function rendered(actor: Actor, asked: Parameters<typeof readIncidentPage>[2]): Promise<Rendered> {
    const [page, ranked] = await Promise.all([
      readIncidentPage(deps, actor, asked),
      rankedPriorities(deps, actor),
    ]);
    const { name, title, incidentPriorityId, individuals, commander } = page.incident;
    const takePart = page.people.map(({ individual }) => individual);
    const people = [...individuals, ...takePart];
    const involved = [...takePart.map(({ email }) => email), ...page.events.map(({ actor }) => actor)];
    return {
      title: `${name} ${title}`,
      stream: `${app}/streams/${asked.id}`,
      names: new Map(people.map(({ email, name }) => [email, name])),
      involved: new Set(commander ? [...involved, commander.email] : involved),
      content: <Incident page={page} bars={barsOf(ranked)(incidentPriorityId)} />,
    };
  }

  const onlookers = new Onlookers(deps, (actor, id) =>
    rendered(actor, { id, view: "timeline", cursor: undefined, at: undefined }),
  );

  /** What an action is about. @throws NotFound */
  async function placeOf({ visitor, url }: Visit, id: number, about?: Values): Promise<Place> {
    const { actor, timeZone } = visitor;
    const [incident, { items: participants, next_cursor: next }] = await Promise.all([
      getIncident(deps, actor, id),
      listParticipants(deps, actor, { incidentId: id, active: true, limit: 100 }),
    ]);
    const given = about ?? new Values(new Map(url.searchParams));
    return { context: deps, actor, incident, participants, areMore: next !== null, timeZone, about: given };
  }

  async function formOf(name: string, action: Action, place: Place) {
    const fields = await action.fields(place);
    return { name, action, incident: place.incident, fields, citedBy: await action.citedBy?.(place) };
  }

  async function actionPage(visit: Visit): Promise<PageContent> {
    const [name, action] = actionOf(visit.params);
    const place = await placeOf(visit, idOf(visit.params));
    const form = await formOf(name, action, place);
    return {
      title: `${action.title} · ${place.incident.name}`,
      content: <ActionPage {...form} />,
    };
  }

  const act = site.submit(async (visit, values, address) => {
    const [name, action] = actionOf(visit.params);
    const id = idOf(visit.params);
    const place = await placeOf(visit, id, values);
    return {
      run: async (context) => {
        const to = (await action.run({ ...place, context, values, address })) ?? "";
        return to.startsWith("/") ? to : `${incidentPath(id)}${to}`;
      },
      again: async (fill) => {
        const form = await formOf(name, action, await placeOf(visit, id, values));
        return { title: action.title, content: <ActionPage {...form} {...fill(form.fields)} /> };
      },
    };
  });

  async function redactedPage({ visitor, url, params }: Visit): Promise<PageContent> {
    const { actor } = visitor;
    const id = idOf(params);
    const incident = await getIncident(deps, actor, id);
    requireAdmin(actor, "redact a text");
    const entry = idIn(params.event_id);
    if (entry === undefined) throw new NotFound("There is no such event");
    // The address may be anybody's.
    const plugins = url.searchParams.getAll("plugin").filter((slug) => slugPattern.test(slug));
    const ids = url.searchParams.getAll("document").flatMap((text) => idIn(text) ?? []);
    const of = { plugins, documents: await readDocuments(deps, actor, { incidentId: id, ids }) };
    return {
      title: `Redacted · ${incident.name}`,
      content: <RemainsPage {...{ incident, entry, of }} />,
    };
  }

  async function historyPage({ visitor, params }: Visit): Promise<PageContent> {
    const { actor } = visitor;
    const id = idOf(params);
    const eventId = idIn(params.event_id);
    const incident = await getIncident(deps, actor, id);
    if (eventId === undefined) throw new NotFound("There is no such event");
    const { items: revisions } = await listRevisions(deps, actor, { incidentId: id, eventId, limit: 100 });
    return {
      title: `Earlier texts · ${incident.name}`,
      content: <HistoryPage incident={incident} revisions={revisions} />,
    };
  }

  async function exportPage(visit: Visit): Promise<Response> {
    const { params, visitor } = visit;
    const format = exportFormats.find((one) => one === params.format);
    if (!format) throw new NotFound(noRoute);
    const { name, pieces } = await exportIncident(deps, visitor.actor, { id: idOf(params), format });
    return download(site, visit, { name, type: exportTypes[format], pieces });
  }

  async function stream({ visitor, request, server, params }: Visit): Promise<Response> {
    const { actor } = visitor;
    const id = idOf(params);
    const slice = await readSlice(deps.db, actor, id, Number.MAX_SAFE_INTEGER);
    if (!slice) throw noSuchIncident();
    // The page reads everything when it connects, so the stream begins now.
    const body = streams.openIncident(actor, id, slice.tail, withoutTimeout(server, request));
    return new Response(body, { headers: streamHeaders });
  }

  return new Elysia({ name: "incident pages" })
    .get("/streams/:incident_id", site.stream(stream))
    .get("/incidents/:incident_id", site.read(incidentPage))
    .get("/incidents/:incident_id/entries/:event_id", site.read(historyPage))
    .get("/incidents/:incident_id/export/:format", site.read(exportPage))
    .get("/incidents/:incident_id/redacted/:event_id", site.read(redactedPage))
    .get("/incidents/:incident_id/:action", site.read(actionPage))
    .post("/incidents/:incident_id/:action", act);
};

function actionOf({ action = "" }: Record<string, string>): [string, Action] {
  const found = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (!found) throw new NotFound(noRoute);
  return [action, found];
}

/** @throws NotFound */
function idOf({ incident_id }: Record<string, string>): number {
  const id = idIn(incident_id);
  if (id === undefined) throw noSuchIncident();
  return id;
}
