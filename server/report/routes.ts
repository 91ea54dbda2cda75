import { Elysia } from "elysia";
import { getReport } from "../../core/incident/report/get.ts";
import { listReports } from "../../core/incident/report/list.ts";
import { writeReport } from "../../core/incident/report/write.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { refusalsOfPostWithin, refusalsWithin } from "../http/error.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";
import { newReport, reportParams, reportQuery, reportView } from "./model.ts";

/** Status reports of an incident that the actor may read. They are corrected by their events. */
export const reportRoutes = (deps: Deps) =>
  new Elysia({ name: "report", prefix: "/incidents/:incident_id/reports" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, params, query }) => {
        const incidentId = Number(params.incident_id);
        const page = await listReports(deps, actor, { ...listQueryOf(query), incidentId });
        return { ...page, items: page.items.map(toApi) };
      },
      {
        actor: true,
        params: incidentParams,
        query: reportQuery,
        response: { 200: pageOf(reportView), ...refusalsWithin },
      },
    )
    .post(
      "/",
      async ({ actor, params, body, request, set }) => {
        const incidentId = Number(params.incident_id);
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => toApi(await writeReport(context, actor, { incidentId, ...body })),
          () => seeIncident(deps, actor, incidentId),
          (report) => `/incidents/${incidentId}/reports/${report.id}`,
        );
        return created(set, made);
      },
      {
        actor: true,
        params: incidentParams,
        body: newReport,
        response: { 201: reportView, ...refusalsOfPostWithin },
      },
    )
    .get(
      "/:report_id",
      async ({ actor, params }) => {
        const ids = { incidentId: Number(params.incident_id), reportId: Number(params.report_id) };
        return toApi(await getReport(deps, actor, ids));
      },
      { actor: true, params: reportParams, response: { 200: reportView, ...refusalsWithin } },
    );
