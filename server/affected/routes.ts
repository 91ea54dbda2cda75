import { Elysia, t } from "elysia";
import { getAffected, mostAffected, setAffected } from "../../core/incident/affected/affected.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { refusalsOfOne } from "../http/error.ts";
import { closed, id } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";

const named = t.Object({ id, name: t.String() }, closed);
const affectedView = t.Object({ services: t.Array(named), applications: t.Array(named) }, closed);
const ids = t.Array(id, { maxItems: mostAffected });
const changedAffected = t.Object({ service_ids: ids, application_ids: ids }, closed);

/** The services and applications that an incident affects. */
export const affectedRoutes = (deps: Deps) =>
  new Elysia({ name: "affected", prefix: "/incidents/:incident_id/affected" })
    .use(actorMacro(deps))
    .get("/", ({ actor, params }) => getAffected(deps, actor, Number(params.incident_id)), {
      actor: true,
      params: incidentParams,
      response: { 200: affectedView, ...refusalsOfOne },
      detail: { summary: "List the services and applications that an incident affects" },
    })
    .put(
      "/",
      ({ actor, params, body }) => {
        const { service_ids: serviceIds, application_ids: applicationIds } = body;
        const incidentId = Number(params.incident_id);
        return setAffected(deps, actor, { incidentId, serviceIds, applicationIds });
      },
      {
        actor: true,
        params: incidentParams,
        body: changedAffected,
        response: { 200: affectedView, ...refusalsOfOne },
        detail: { summary: "Replace the services and applications that an incident affects" },
      },
    );
