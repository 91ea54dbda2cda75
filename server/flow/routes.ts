import { Elysia, t } from "elysia";
import { retryFlow } from "../../core/incident/flow/retry.ts";
import { getIncident } from "../../core/incident/incident/get.ts";
import { runFlowWithin } from "../../core/incident/steps/run.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { toApi } from "../../platform/names.ts";
import { nameLength } from "../../platform/text.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { refusalsOfPostWithin } from "../http/error.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import { closed } from "../http/schema.ts";
import { incidentDetail, incidentParams } from "../incident/model.ts";

const retried = t.Optional(
  t.Object(
    {
      step: t.Optional(
        t.String({
          maxLength: nameLength,
          description: "May be a finished step. Default: all failed steps",
        }),
      ),
    },
    closed,
  ),
);

const stepsView = t.Object({ steps: incidentDetail.properties.steps }, closed);

/** A user is waiting for the result: longer than after a report, but not too long. */
const flowMilliseconds = 2000;

/** Runs the follow-up steps of an incident again. */
export const flowRoutes = (deps: Deps) =>
  new Elysia({ name: "flow", prefix: "/incidents/:incident_id" }).use(actorMacro(deps)).post(
    "/retry",
    async ({ actor, params, body: said, request }) => {
      const incidentId = Number(params.incident_id);
      const body = said ?? {};
      await withIdempotencyKey(
        deps,
        { actor, request, body },
        async (context) => {
          await retryFlow(context, actor, { incidentId, step: body.step });
          return {};
        },
        () => seeIncident(deps, actor, incidentId),
      );
      await runFlowWithin(deps, incidentId, flowMilliseconds);
      // The current state, even if the key is repeated.
      return { steps: toApi((await getIncident(deps, actor, incidentId)).steps) };
    },
    {
      actor: true,
      detail: { summary: "Retry the follow-up steps of an incident" },
      params: incidentParams,
      body: retried,
      response: { 200: stepsView, ...refusalsOfPostWithin },
    },
  );
