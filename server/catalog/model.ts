import type { TObject, TProperties } from "@sinclair/typebox";
import { type Static, t } from "elysia";
import type { Resource } from "../../core/catalog/resource.ts";
import { nameLength } from "../../platform/text.ts";
import { closed, id, instant, listQuery, pageOf, q, readOnly, version } from "../http/schema.ts";

/** How a resource appears in the API. */
export interface Model<Path extends string, Fields extends object, Written extends TProperties> {
  /** `teams` */
  path: Path;
  /** `team_id` */
  parameter: string;
  /** The fields of a PUT. All are required, since an omitted field would be lost. */
  written: Written;
  /** The fields that a POST may omit, and their defaults. */
  defaults: Partial<Static<TObject<Written>>>;
  /** The fields shown in addition to id, version and timestamps. */
  shown: TProperties;
  fieldsOf(body: Static<TObject<Written>>): Fields;
}

/** The request and response schemas of a resource's routes. */
export function schemasOf(
  { filters, list }: Pick<Resource, "filters" | "list">,
  { written, defaults, shown }: { written: TProperties; defaults: object; shown: TProperties },
) {
  const all = { id, ...shown, version, created_at: instant, updated_at: instant };
  const view = t.Object(all, closed);
  const sorts = Object.keys(list.sorts).flatMap((sort) => [`\`${sort}\``, `\`-${sort}\``]);
  return {
    view,
    page: pageOf(view),
    query: listQuery(
      `${sorts.join(", ")}; \`${list.defaultSort}\` unless given${list.search ? ", with `q` by rank" : ""}`,
      {
        ...(list.search ? { q } : {}),
        ...Object.fromEntries(
          Object.keys(filters).map((name) => [name, t.Optional(t.String({ maxLength: nameLength }))]),
        ),
      },
    ),
    newRecord: t.Object(
      Object.fromEntries(
        Object.entries(written).map(([field, schema]) => [
          field,
          field in defaults ? t.Optional(schema) : schema,
        ]),
      ),
      closed,
    ),
    changedRecord: t.Object({ ...written, version, ...readOnly(all, { ...written, version }) }, closed),
  };
}
