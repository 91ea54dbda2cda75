import { Elysia, status } from "elysia";
import { amendEntry, withdrawEntry } from "../../core/incident/event/amend.ts";
import { type EventIds, getEvent } from "../../core/incident/event/get.ts";
import { listEvents } from "../../core/incident/event/list.ts";
import { noteOnTimeline } from "../../core/incident/event/note.ts";
import { documentsWithText, redactEvent } from "../../core/incident/event/redact.ts";
import { listRevisions } from "../../core/incident/event/revisions.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { parseInstant } from "../../platform/instant.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { refusalsOfChange, refusalsOfOne, refusalsOfPostWithin, refusalsWithin } from "../http/error.ts";
import { withEtag } from "../http/etag.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";
import {
  changedEvent,
  eventParams,
  eventQuery,
  eventView,
  newEvent,
  redactedEvent,
  redactionNotice,
  redactionView,
  revisionQuery,
  revisionView,
  viewOf,
  withdrawnEvent,
} from "./model.ts";

const idsOf = (params: { incident_id: string; event_id: string }): EventIds => ({
  incidentId: Number(params.incident_id),
  eventId: Number(params.event_id),
});

/** The timeline of an incident that the actor may read. People add notes, and correct or withdraw what they wrote. */
export const eventRoutes = (deps: Deps) =>
  new Elysia({ name: "event", prefix: "/incidents/:incident_id/events" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, params, query }) => {
        const incidentId = Number(params.incident_id);
        const { kind } = query;
        const after = query.after === undefined ? undefined : Number(query.after);
        const page = await listEvents(deps, actor, { ...listQueryOf(query), incidentId, kind, after });
        return { ...page, items: page.items.map(viewOf) };
      },
      {
        actor: true,
        params: incidentParams,
        query: eventQuery,
        response: { 200: pageOf(eventView), ...refusalsWithin },
      },
    )
    .post(
      "/",
      async ({ actor, params, body, request }) => {
        const incidentId = Number(params.incident_id);
        const { description } = body;
        const at = body.at === undefined ? undefined : parseInstant("at", body.at);
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => viewOf(await noteOnTimeline(context, actor, { incidentId, description, at })),
          () => seeIncident(deps, actor, incidentId),
        );
        return status(201, made.body);
      },
      {
        actor: true,
        params: incidentParams,
        body: newEvent,
        response: { 201: eventView, ...refusalsOfPostWithin },
      },
    )
    .get(
      "/:event_id",
      async ({ actor, params, set }) => withEtag(set, viewOf(await getEvent(deps, actor, idsOf(params)))),
      { actor: true, params: eventParams, response: { 200: eventView, ...refusalsWithin } },
    )
    .put(
      "/:event_id",
      async ({ actor, params, body, set }) => {
        const { version, description, conditions, actions, needs } = body;
        const text = { description, conditions, actions, needs };
        return withEtag(set, viewOf(await amendEntry(deps, actor, { ...idsOf(params), version, text })));
      },
      {
        actor: true,
        params: eventParams,
        body: changedEvent,
        response: { 200: eventView, ...refusalsOfChange },
      },
    )
    .post(
      "/:event_id/withdraw",
      async ({ actor, params, body, request, set }) => {
        const ids = idsOf(params);
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => viewOf(await withdrawEntry(context, actor, { ...ids, ...body })),
          () => seeIncident(deps, actor, ids.incidentId),
        );
        return withEtag(set, made.body);
      },
      {
        actor: true,
        params: eventParams,
        body: withdrawnEvent,
        response: { 200: eventView, ...refusalsOfPostWithin },
      },
    )
    .post(
      "/:event_id/redact",
      async ({ actor, params, body, request, server }) => {
        const ids = idsOf(params);
        const address = addressOf(deps, request, server);
        let removed: string[] | undefined;
        const { body: redacted } = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => {
            const done = await redactEvent(context, actor, { ...ids, ...body, address });
            removed = done.removed;
            return { event: viewOf(done.event), received_by: done.receivedBy, notice: redactionNotice };
          },
          () => seeIncident(deps, actor, ids.incidentId),
        );
        return { ...redacted, cited_by: await documentsWithText(deps, actor, { ...ids, removed }) };
      },
      {
        actor: true,
        params: eventParams,
        body: redactedEvent,
        response: { 200: redactionView, ...refusalsOfPostWithin },
      },
    )
    .get(
      "/:event_id/revisions/",
      async ({ actor, params, query }) => {
        const page = await listRevisions(deps, actor, { ...listQueryOf(query), ...idsOf(params) });
        return { ...page, items: page.items.map(toApi) };
      },
      {
        actor: true,
        params: eventParams,
        query: revisionQuery,
        response: { 200: pageOf(revisionView), ...refusalsOfOne },
      },
    );
