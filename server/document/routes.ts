import { Elysia, status, t } from "elysia";
import { createDocument } from "../../core/incident/document/create.ts";
import { getDocument } from "../../core/incident/document/get.ts";
import { listDocuments } from "../../core/incident/document/list.ts";
import { removeDocument } from "../../core/incident/document/remove.ts";
import { updateDocument } from "../../core/incident/document/update.ts";
import { seeIncident } from "../../core/incident/visibility/see.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { refusals, refusalsOfChange, refusalsOfOne, refusalsOfPost } from "../http/error.ts";
import { withEtag } from "../http/etag.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import {
  changedDocument,
  documentParams,
  documentQuery,
  documentView,
  fieldsOf,
  newDocument,
} from "./model.ts";

/** Documents of incidents that the actor may read, and documents without an incident. */
export const documentRoutes = (deps: Deps) =>
  new Elysia({ name: "document", prefix: "/documents" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const page = await listDocuments(deps, actor, {
          ...listQueryOf(query),
          incidentId: query.incident_id === undefined ? undefined : Number(query.incident_id),
          resourceType: query.resource_type,
          name: query.name,
        });
        return { ...page, items: page.items.map(toApi) };
      },
      { actor: true, query: documentQuery, response: { 200: pageOf(documentView), ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        const { incident_id = null, plugin_slug = null, resource_id = null } = body;
        const wanted = {
          ...fieldsOf(body),
          incidentId: incident_id,
          pluginSlug: plugin_slug,
          resourceId: resource_id,
        };
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => toApi(await createDocument(context, actor, wanted)),
          ({ incident_id }) => (incident_id === null ? undefined : seeIncident(deps, actor, incident_id)),
          ({ id }) => `/documents/${id}`,
        );
        return created(set, made);
      },
      {
        actor: true,
        body: newDocument,
        response: { 201: documentView, ...refusalsOfPost },
      },
    )
    .get(
      "/:document_id",
      async ({ actor, params, set }) =>
        withEtag(set, toApi(await getDocument(deps, actor, Number(params.document_id)))),
      { actor: true, params: documentParams, response: { 200: documentView, ...refusalsOfOne } },
    )
    .put(
      "/:document_id",
      async ({ actor, params, body, set }) => {
        const { version } = body;
        const change = { ...fieldsOf(body), id: Number(params.document_id), version };
        return withEtag(set, toApi(await updateDocument(deps, actor, change)));
      },
      {
        actor: true,
        params: documentParams,
        body: changedDocument,
        response: { 200: documentView, ...refusalsOfChange },
      },
    )
    .delete(
      "/:document_id",
      async ({ actor, params, request, server }) => {
        const address = addressOf(deps, request, server);
        await removeDocument(deps, actor, { id: Number(params.document_id), address });
        return status(204, undefined);
      },
      {
        actor: true,
        params: documentParams,
        response: { 204: t.Void(), ...refusalsOfChange },
      },
    );
