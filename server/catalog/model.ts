import type { TObject, TProperties } from "@sinclair/typebox";
import { type Static, t } from "elysia";
import type { Resource } from "../../core/catalog/resource.ts";
import { nameLength } from "../../platform/text.ts";
import { closed, id, instant, listQuery, pageOf, readOnly, version } from "../http/schema.ts";

/** How a resource looks from outside. */
export interface Model<
  Path extends string,
  Item,
  Fields extends object,
  Written extends TProperties,
  Shown extends TProperties,
> {
  /** `teams` */
  path: Path;
  /** `team_id` */
  parameter: string;
  /** What a PUT takes: all of it, as a field that is left out would be lost. */
  written: Written;
  /** What a POST may leave out, and what it is then. */
  defaults: Partial<Static<TObject<Written>>>;
  /** What is shown of a record beside its id, version and instants. */
  shown: Shown;
  fieldsOf(body: Static<TObject<Written>>): Fields;
  viewOf(item: Item): Static<TObject<Shown>>;
}

/** Everything that the routes of a resource take and answer. */
export function schemasOf(
  { filters, list }: Pick<Resource, "filters" | "list">,
  { written, defaults, shown }: { written: TProperties; defaults: object; shown: TProperties },
) {
  const all = { id, ...shown, version, created_at: instant, updated_at: instant };
  const view = t.Object(all, closed);
  const { q, ...paging } = listQuery;
  const sorts = Object.keys(list.sorts).flatMap((sort) => [`\`${sort}\``, `\`-${sort}\``]);
  return {
    view,
    page: pageOf(view),
    query: t.Object(
      {
        ...(list.search ? { q } : {}),
        ...paging,
        sort: t.Optional(
          t.String({
            description: `${sorts.join(", ")}; \`${list.defaultSort}\` unless given${list.search ? ", with `q` by rank" : ""}`,
          }),
        ),
        ...Object.fromEntries(
          Object.keys(filters).map((name) => [name, t.Optional(t.String({ maxLength: nameLength }))]),
        ),
      },
      closed,
    ),
    created: t.Object(
      Object.fromEntries(
        Object.entries(written).map(([field, schema]) => [
          field,
          field in defaults ? t.Optional(schema) : schema,
        ]),
      ),
      closed,
    ),
    changed: t.Object({ ...written, version, ...readOnly(all, { ...written, version }) }, closed),
  };
}
