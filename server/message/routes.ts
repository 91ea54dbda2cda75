import { Elysia, status, t } from "elysia";
import { listMessages } from "../../core/incident/message/list.ts";
import { say } from "../../core/incident/message/say.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { toApi } from "../../platform/names.ts";
import { descriptionLength } from "../../platform/text.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { entryOf } from "../event/model.ts";
import { refusalsOfPostWithin, refusalsWithin } from "../http/error.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import { closed, id, instant, listQuery, listQueryOf, nullable, pageOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";
import { personView } from "../participant/model.ts";

export const messageView = t.Object(
  {
    id,
    at: instant,
    author: t.Union([personView, t.Null()], { description: "Null: the service itself" }),
    recipient: t.Union([personView, t.Null()], { description: "Null: everyone" }),
    text: t.String(),
    ...entryOf,
  },
  closed,
);

const messageQuery = listQuery("`at` or `-at` (default)");

const newMessage = t.Object(
  {
    text: t.String({ minLength: 1, maxLength: descriptionLength }),
    recipient_id: t.Optional(
      nullable({ ...id, description: "The individual who alone gets the message; must be a participant" }),
    ),
  },
  closed,
);

/** Messages in the built-in channel of an incident that the actor may read. */
export const messageRoutes = (deps: Deps) =>
  new Elysia({ name: "message", prefix: "/incidents/:incident_id/messages" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, params, query }) => {
        const incidentId = Number(params.incident_id);
        const page = await listMessages(deps, actor, { ...listQueryOf(query), incidentId });
        return { ...page, items: page.items.map(toApi) };
      },
      {
        actor: true,
        params: incidentParams,
        query: messageQuery,
        response: { 200: pageOf(messageView), ...refusalsWithin },
      },
    )
    .post(
      "/",
      async ({ actor, params, body, request }) => {
        const { text, recipient_id } = body;
        const incidentId = Number(params.incident_id);
        const wanted = { incidentId, text, recipientId: recipient_id ?? undefined };
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => toApi(await say(context, actor, wanted)),
          () => seeIncident(deps, actor, incidentId),
        );
        return status(201, made.body);
      },
      {
        actor: true,
        params: incidentParams,
        body: newMessage,
        response: { 201: messageView, ...refusalsOfPostWithin },
      },
    );
