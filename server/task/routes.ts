import { Elysia, status, t } from "elysia";
import { createTask } from "../../core/incident/task/create.ts";
import { getTask } from "../../core/incident/task/get.ts";
import { listTasks } from "../../core/incident/task/list.ts";
import { removeTask } from "../../core/incident/task/remove.ts";
import { updateTask } from "../../core/incident/task/update.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { parseInstant } from "../../platform/instant.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { refusals, refusalsOfChange, refusalsOfOne, refusalsOfPost } from "../http/error.ts";
import { withEtag } from "../http/etag.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { changedTask, fieldsOf, newTask, taskParams, taskQuery, taskView } from "./model.ts";

/** Tasks of incidents that the actor may read. */
export const taskRoutes = (deps: Deps) =>
  new Elysia({ name: "task", prefix: "/tasks" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const { status, owner, assignee, overdue } = query;
        const page = await listTasks(deps, actor, {
          ...listQueryOf(query),
          incidentId: query.incident_id === undefined ? undefined : Number(query.incident_id),
          status,
          owner,
          assignee,
          overdue: overdue === "true",
        });
        return { ...page, items: page.items.map(toApi) };
      },
      {
        actor: true,
        query: taskQuery,
        response: { 200: pageOf(taskView), ...refusals },
        detail: { summary: "List tasks" },
      },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        const { incident_id, document_id = null, resolve_by } = body;
        const wanted = {
          ...fieldsOf(body),
          incidentId: incident_id,
          documentId: document_id,
          resolveBy: resolve_by === undefined ? undefined : parseInstant("resolve_by", resolve_by),
        };
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => toApi(await createTask(context, actor, wanted)),
          ({ incident_id }) => seeIncident(deps, actor, incident_id),
          (task) => `/tasks/${task.id}`,
        );
        return created(set, made);
      },
      {
        actor: true,
        body: newTask,
        response: { 201: taskView, ...refusalsOfPost },
        detail: { summary: "Add a task to an incident" },
      },
    )
    .get(
      "/:task_id",
      async ({ actor, params, set }) =>
        withEtag(set, toApi(await getTask(deps, actor, Number(params.task_id)))),
      {
        actor: true,
        params: taskParams,
        response: { 200: taskView, ...refusalsOfOne },
        detail: { summary: "Get a task" },
      },
    )
    .put(
      "/:task_id",
      async ({ actor, params, body, set }) => {
        const { version, status } = body;
        const resolveBy = parseInstant("resolve_by", body.resolve_by);
        const change = { ...fieldsOf(body), id: Number(params.task_id), version, status, resolveBy };
        return withEtag(set, toApi(await updateTask(deps, actor, change)));
      },
      {
        actor: true,
        params: taskParams,
        body: changedTask,
        response: { 200: taskView, ...refusalsOfChange },
        detail: { summary: "Change a task" },
      },
    )
    .delete(
      "/:task_id",
      async ({ actor, params, request, server }) => {
        const address = addressOf(deps, request, server);
        await removeTask(deps, actor, { id: Number(params.task_id), address });
        return status(204, undefined);
      },
      {
        actor: true,
        params: taskParams,
        response: { 204: t.Void(), ...refusalsOfChange },
        detail: { summary: "Delete a task" },
      },
    );
