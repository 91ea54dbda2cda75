import { Elysia, status, t } from "elysia";
import pLimit from "p-limit";
import { getIncident } from "../../core/incident/incident/get.ts";
import { listIncidents } from "../../core/incident/incident/list.ts";
import { isIncidentName } from "../../core/incident/incident/name.ts";
import { removeIncident } from "../../core/incident/lifecycle/remove.ts";
import { reportIncident } from "../../core/incident/lifecycle/report.ts";
import { updateIncident } from "../../core/incident/lifecycle/update.ts";
import { runFlowWithin } from "../../core/incident/steps/run.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { fromApi, toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { refusals, refusalsOfChange, refusalsOfOne, refusalsOfPost } from "../http/error.ts";
import { withEtag } from "../http/etag.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { pageOf } from "../http/schema.ts";
import {
  changedIncident,
  fieldsOf,
  incidentDetail,
  incidentParams,
  incidentQuery,
  incidentView,
  newIncident,
  queryOf,
} from "./model.ts";

/** How long an answer waits for the follow-up steps; the rest continues without it. */
const flowMilliseconds = 1000;

/** How many reports occupy a connection at once, so that enough are left for reads when everybody reports. */
const reports = pLimit(3);

/** Incidents that the actor may read. */
export const incidentRoutes = (deps: Deps) =>
  new Elysia({ name: "incident", prefix: "/incidents" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const page = await listIncidents(deps, actor, queryOf(query));
        return { ...page, items: page.items.map(toApi) };
      },
      { actor: true, query: incidentQuery, response: { 200: pageOf(incidentView), ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        const wanted = { description: "", ...fromApi(body) };
        const made = await reports(() =>
          withIdempotencyKey(
            deps,
            { actor, request, body },
            async (context) => toApi(await reportIncident(context, actor, wanted)),
            ({ id }) => seeIncident(deps, actor, id),
            ({ id }) => `/incidents/${id}`,
          ),
        );
        await runFlowWithin(deps, made.body.id, flowMilliseconds);
        return created(set, made);
      },
      {
        actor: true,
        detail: { summary: "Report an incident" },
        body: newIncident,
        response: { 201: incidentView, ...refusalsOfPost },
      },
    )
    .get(
      "/:incident_id",
      async ({ actor, params, set }) => {
        const { incident_id: id } = params;
        const incident = await getIncident(deps, actor, isIncidentName(id) ? id : Number(id));
        // For If-Match: the version of what a PUT replaces. It is not for caching, since steps, roles and costs change
        // without a new version.
        return withEtag(set, toApi(incident));
      },
      { actor: true, params: incidentParams, response: { 200: incidentDetail, ...refusalsOfOne } },
    )
    .put(
      "/:incident_id",
      async ({ actor, params, body, set }) => {
        const change = { ...fieldsOf(body), id: Number(params.incident_id), version: body.version };
        const { incident, follows } = await updateIncident(deps, actor, change);
        if (follows) await runFlowWithin(deps, incident.id, flowMilliseconds);
        return withEtag(set, toApi(incident));
      },
      {
        actor: true,
        params: incidentParams,
        body: changedIncident,
        response: { 200: incidentView, ...refusalsOfChange },
      },
    )
    .delete(
      "/:incident_id",
      async ({ actor, params, request, server }) => {
        const address = addressOf(deps, request, server);
        await removeIncident(deps, actor, { id: Number(params.incident_id), address });
        return status(204, undefined);
      },
      {
        actor: true,
        params: incidentParams,
        response: { 204: t.Void(), ...refusalsOfChange },
      },
    );
