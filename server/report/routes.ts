import { Elysia, status } from "elysia";
import { getReport } from "../../core/incident/report/get.ts";
import { listReports } from "../../core/incident/report/list.ts";
import { writeReport } from "../../core/incident/report/write.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";
import { newReport, reportPage, reportParams, reportQuery, reportView, viewOf } from "./model.ts";

const refusals = { 400: problemSchema, 401: problemSchema, 404: problemSchema };
const refusalsOfPost = { ...refusals, 403: problemSchema, 409: problemSchema, 422: problemSchema };

/** Status reports of an incident that the actor may read. They are never changed. */
export const reportRoutes = (deps: Deps) =>
  new Elysia({ name: "report", prefix: "/incidents/:incident_id/reports" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, params, query }) => {
        const incidentId = Number(params.incident_id);
        const page = await listReports(deps, actor, { ...listQueryOf(query), incidentId });
        return { ...page, items: page.items.map(viewOf) };
      },
      {
        ...{ actor: true, params: incidentParams, query: reportQuery },
        response: { 200: reportPage, ...refusals },
      },
    )
    .post(
      "/",
      async ({ actor, params, body, request, set }) => {
        const incidentId = Number(params.incident_id);
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => {
            const { plugins } = deps;
            const report = viewOf(await writeReport({ ...context, plugins }, actor, { incidentId, ...body }));
            return { headers: { location: `/incidents/${incidentId}/reports/${report.id}` }, body: report };
          },
          () => seeIncident(deps, actor, incidentId),
        );
        Object.assign(set.headers, made.headers);
        return status(201, made.body);
      },
      {
        ...{ actor: true, params: incidentParams, body: newReport },
        response: { 201: reportView, ...refusalsOfPost },
      },
    )
    .get(
      "/:report_id",
      async ({ actor, params }) => {
        const ids = { incidentId: Number(params.incident_id), reportId: Number(params.report_id) };
        return viewOf(await getReport(deps, actor, ids));
      },
      { actor: true, params: reportParams, response: { 200: reportView, ...refusals } },
    );
