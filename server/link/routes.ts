import { Elysia, status, t } from "elysia";
import { idOfName, isIncidentName } from "../../core/incident/incident/name.ts";
import { createLink } from "../../core/incident/link/create.ts";
import { listLinks } from "../../core/incident/link/list.ts";
import { removeLink } from "../../core/incident/link/remove.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { refusalsOfOne, refusalsOfPostWithin } from "../http/error.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";
import { linkParams, linkQuery, linkView, newLink } from "./model.ts";

/** Other incidents that an incident is related to, or that duplicate it. Only those that the actor may read. */
export const linkRoutes = (deps: Deps) =>
  new Elysia({ name: "link", prefix: "/incidents/:incident_id/links" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, params, query }) => {
        const incidentId = Number(params.incident_id);
        const page = await listLinks(deps, actor, { ...listQueryOf(query), incidentId });
        return { ...page, items: page.items.map(toApi) };
      },
      {
        actor: true,
        params: incidentParams,
        query: linkQuery,
        response: { 200: pageOf(linkView), ...refusalsOfOne },
      },
    )
    .post(
      "/",
      async ({ actor, params, body, request }) => {
        const incidentId = Number(params.incident_id);
        const { incident, kind } = body;
        const linkedId = isIncidentName(incident) ? await idOfName(deps, incident) : Number(incident);
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => toApi(await createLink(context, actor, { incidentId, linkedId, kind })),
          async (link) => {
            await seeIncident(deps, actor, incidentId);
            await seeIncident(deps, actor, link.incident.id);
          },
        );
        return status(201, made.body);
      },
      {
        actor: true,
        params: incidentParams,
        body: newLink,
        response: { 201: linkView, ...refusalsOfPostWithin },
      },
    )
    .delete(
      "/:link_id",
      async ({ actor, params }) => {
        const ids = { incidentId: Number(params.incident_id), linkId: Number(params.link_id) };
        await removeLink(deps, actor, ids);
        return status(204, undefined);
      },
      { actor: true, params: linkParams, response: { 204: t.Void(), ...refusalsOfOne } },
    );
