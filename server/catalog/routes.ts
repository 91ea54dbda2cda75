import type { TObject, TProperties } from "@sinclair/typebox";
import { Elysia, type Static, status, t } from "elysia";
import { createRecord } from "../../core/catalog/create.ts";
import { getRecord } from "../../core/catalog/get.ts";
import { listRecords } from "../../core/catalog/list.ts";
import { removeRecord } from "../../core/catalog/remove.ts";
import type { CatalogRecord, CatalogTable, Columns, Resource } from "../../core/catalog/resource.ts";
import { updateRecord } from "../../core/catalog/update.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { refusals, refusalsOfChange, refusalsOfOne, refusalsOfPost } from "../http/error.ts";
import { withEtag } from "../http/etag.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { closed, idText, listQueryOf } from "../http/schema.ts";
import { type Model, schemasOf } from "./model.ts";

/**
 * The routes of a catalog resource. The compiler checks a model's `fieldsOf` against its schemas, but not the routes,
 * whose schemas are assembled here.
 */
export function catalogRoutes<
  T extends CatalogTable,
  C extends Columns,
  Fields extends object,
  Written extends TProperties,
  Path extends string,
>(deps: Deps, resource: Resource<T, C, Fields>, model: Model<Path, Fields, Written>) {
  const { path, parameter, fieldsOf } = model;
  const { view, page, query, newRecord, changedRecord } = schemasOf(resource, model);
  const params = t.Object({ [parameter]: idText }, closed);
  const one = `/:${parameter}` as const;
  const idOf = (of: Record<string, string>) => Number(of[parameter]);
  const viewOf = (item: CatalogRecord) => toApi(item);
  return new Elysia({ name: `catalog-${path}`, prefix: `/${path}` })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const { q, sort, limit, cursor, ...filters } = query;
        const page = await listRecords(deps, actor, resource, {
          ...listQueryOf({ q, sort, limit, cursor }),
          filters,
        });
        return { ...page, items: page.items.map(viewOf) };
      },
      { actor: true, query, response: { 200: page, ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        const fields = fieldsOf({ ...model.defaults, ...body } as Static<TObject<Written>>);
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => viewOf(await createRecord(context, actor, resource, fields)),
          // The creator of a record may read it.
          () => {},
          (record) => `/${path}/${record.id}`,
        );
        return created(set, made);
      },
      {
        actor: true,
        body: newRecord,
        response: { 201: view, ...refusalsOfPost },
      },
    )
    .get(
      one,
      async ({ actor, params, set }) =>
        withEtag(set, viewOf(await getRecord(deps, actor, resource, idOf(params)))),
      { actor: true, params, response: { 200: view, ...refusalsOfOne } },
    )
    .put(
      one,
      async ({ actor, params, body, set }) => {
        const { version } = body;
        // Without fields that a PUT accepts and ignores.
        const names = new Set(Object.keys(model.written));
        const written = Object.fromEntries(Object.entries(body).filter(([name]) => names.has(name)));
        const fields = fieldsOf(written as Static<TObject<Written>>);
        return withEtag(
          set,
          viewOf(await updateRecord(deps, actor, resource, { id: idOf(params), version, fields })),
        );
      },
      { actor: true, params, body: changedRecord, response: { 200: view, ...refusalsOfChange } },
    )
    .delete(
      one,
      async ({ actor, params, request, server }) => {
        const address = addressOf(deps, request, server);
        await removeRecord(deps, actor, resource, { id: idOf(params), address });
        return status(204, undefined);
      },
      { actor: true, params, response: { 204: t.Void(), ...refusalsOfChange } },
    );
}
