import { Elysia, type Static, status, t } from "elysia";
import type { Actor } from "../../core/context.ts";
import { assumeRole } from "../../core/incident/participant/assume.ts";
import { getParticipant } from "../../core/incident/participant/get.ts";
import { inviteParticipant } from "../../core/incident/participant/invite.ts";
import { leaveIncident } from "../../core/incident/participant/leave.ts";
import { listParticipants } from "../../core/incident/participant/list.ts";
import type { Participant } from "../../core/incident/participant/participant.ts";
import { removeParticipant } from "../../core/incident/participant/remove.ts";
import { renounceRole } from "../../core/incident/participant/renounce.ts";
import { runFlowWithin } from "../../core/incident/steps/run.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import type { AppContext } from "../../core/plugin/context.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { nothing } from "../http/body.ts";
import { refusalsOfChange, refusalsOfOne, refusalsOfPostWithin } from "../http/error.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";
import {
  endedRole,
  newParticipant,
  newRole,
  participantParams,
  participantQuery,
  participantView,
} from "./model.ts";

/** How long an answer waits for conversations and groups; the rest continues without it. */
const flowMilliseconds = 300;

const idsOf = (params: { incident_id: string; participant_id: string }) => ({
  incidentId: Number(params.incident_id),
  participantId: Number(params.participant_id),
});

/** The participants of an incident that the actor may read, and their roles. */
export const participantRoutes = (deps: Deps) => {
  /** Makes a change once per key, and answers with the participant at that time. */
  const change = (
    { incidentId, ...post }: { actor: Actor; request: Request; body: unknown; incidentId: number },
    work: (context: AppContext) => Promise<Participant>,
    mayStillRead = (_: Static<typeof participantView>) => seeIncident(deps, post.actor, incidentId),
  ) =>
    withIdempotencyKey(
      deps,
      { ...post, body: post.body ?? {} },
      async (context) => toApi(await work(context)),
      mayStillRead,
      ({ id }) => `/incidents/${incidentId}/participants/${id}`,
    );

  return new Elysia({ name: "participant", prefix: "/incidents/:incident_id/participants" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, params, query }) => {
        const page = await listParticipants(deps, actor, {
          ...listQueryOf(query),
          incidentId: Number(params.incident_id),
          active: query.active && query.active === "true",
        });
        return { ...page, items: page.items.map(toApi) };
      },
      {
        actor: true,
        params: incidentParams,
        query: participantQuery,
        response: { 200: pageOf(participantView), ...refusalsOfOne },
      },
    )
    .post(
      "/",
      async ({ actor, params, body, request, set }) => {
        const incidentId = Number(params.incident_id);
        const { individual_id: individualId, email, roles = ["participant"] } = body;
        const wanted = { incidentId, individualId, email, roles };
        const made = await change({ actor, request, body, incidentId }, (context) =>
          inviteParticipant(context, actor, wanted),
        );
        await runFlowWithin(deps, incidentId, flowMilliseconds);
        return created(set, made);
      },
      {
        actor: true,
        params: incidentParams,
        body: newParticipant,
        response: { 201: participantView, ...refusalsOfPostWithin },
      },
    )
    .get(
      "/:participant_id",
      async ({ actor, params }) => toApi(await getParticipant(deps, actor, idsOf(params))),
      { actor: true, params: participantParams, response: { 200: participantView, ...refusalsOfOne } },
    )
    .delete(
      "/:participant_id",
      async ({ actor, params, request, server }) => {
        const address = addressOf(deps, request, server);
        await removeParticipant(deps, actor, { ...idsOf(params), address });
        return status(204, undefined);
      },
      {
        actor: true,
        params: participantParams,
        response: { 204: t.Void(), ...refusalsOfChange },
      },
    )
    .post(
      "/:participant_id/roles",
      async ({ actor, params, body, request, set }) => {
        const { incidentId, participantId } = idsOf(params);
        const made = await change({ actor, request, body, incidentId }, (context) =>
          assumeRole(context, actor, { incidentId, participantId, ...body }),
        );
        return created(set, made);
      },
      {
        actor: true,
        params: participantParams,
        body: newRole,
        response: { 201: participantView, ...refusalsOfPostWithin },
      },
    )
    .post(
      "/:participant_id/renounce",
      async ({ actor, params, body, request }) => {
        const { incidentId, participantId } = idsOf(params);
        const { body: participant } = await change({ actor, request, body, incidentId }, (context) =>
          renounceRole(context, actor, { incidentId, participantId, ...body }),
        );
        return participant;
      },
      {
        actor: true,
        params: participantParams,
        body: endedRole,
        response: { 200: participantView, ...refusalsOfPostWithin },
      },
    )
    .post(
      "/:participant_id/leave",
      async ({ actor, params, body, request }) => {
        const { incidentId, participantId } = idsOf(params);
        const { body: participant } = await change(
          { actor, request, body, incidentId },
          (context) => leaveIncident(context, actor, { incidentId, participantId }),
          // A person who left a Restricted incident gets the stored answer when they repeat the request.
          async ({ individual }) => {
            if (individual.email !== actor.user) await seeIncident(deps, actor, incidentId);
          },
        );
        await runFlowWithin(deps, incidentId, flowMilliseconds);
        return participant;
      },
      {
        actor: true,
        params: participantParams,
        body: nothing,
        response: { 200: participantView, ...refusalsOfPostWithin },
      },
    );
};
