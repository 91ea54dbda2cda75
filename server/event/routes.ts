import { Elysia, status } from "elysia";
import { listEvents } from "../../core/incident/event/list.ts";
import { noteOnTimeline } from "../../core/incident/event/note.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { parseInstant } from "../../platform/instant.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { refusalsOfPostWithin, refusalsWithin } from "../http/error.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";
import { eventQuery, eventView, newEvent, viewOf } from "./model.ts";

/** The timeline of an incident that the actor may read: users can add notes, but nobody can remove anything. */
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
    );
