import { type SchemaOptions, Type } from "@sinclair/typebox";
import { type TSchema, t } from "elysia";
import { largestLimit, longestQuery, rankedMatches } from "../../core/list/page.ts";

// What the schemas of all resources share. Objects are closed: a name that nobody knows is an error, also in what we say.

export const closed = { additionalProperties: false } as const;

export const nullable = <T extends TSchema>(schema: T) => t.Union([schema, t.Null()]);

/** One of these texts. Elysia's `t.UnionEnum` takes the first of them for what is left out. */
export const oneOf = <T extends string>(values: readonly T[], options: SchemaOptions = {}) =>
  Type.Unsafe<T>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      options,
    ),
  );

/** In a body. TypeBox's own: Elysia's `t.Integer` takes texts as well. */
export const id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
/** In a path or query, as text: Elysia's own numbers there also take `0x10`, and say `body` when they refuse. */
export const idText = t.String({ pattern: "^[1-9][0-9]{0,14}$" });
/** In a query, as text for the same reason. What is more than the largest, core refuses. */
export const limitText = t.String({
  pattern: "^[1-9][0-9]{0,2}$",
  description: `1 to ${largestLimit}; 50 unless given`,
});
/** PostgreSQL's integer. */
export const version = Type.Integer({ minimum: 1, maximum: 2_147_483_646 });
export const instant = t.String({ format: "date-time" });

/**
 * What a GET shows beside what a PUT replaces (`written`). A PUT takes it, so that a record may be sent back as it was read,
 * and passes it over: costs and steps change by themselves meanwhile. The types leave it out, since nothing may be made of it.
 */
export function readOnly(view: Record<string, TSchema>, written: Record<string, TSchema>): object {
  const names = Object.keys(view).filter((name) => !(name in written));
  return Object.fromEntries(names.map((name) => [name, t.Optional({ ...view[name]!, readOnly: true })]));
}

/** Parameters of every list, beside its filters and `sort`. */
export const listQuery = {
  q: t.Optional(
    t.String({
      maxLength: longestQuery,
      description: `Words to find: \`disk "full up" -test\`. Listed are the newest ${rankedMatches} matches, the best first`,
    }),
  ),
  limit: t.Optional(limitText),
  cursor: t.Optional(t.String({ description: "`next_cursor` of the page before" })),
};

/** The parameters as core wants them. */
export function listQueryOf(query: { q?: string; sort?: string; limit?: string; cursor?: string }) {
  const { q, sort, limit, cursor } = query;
  return { q, sort, cursor, limit: limit === undefined ? undefined : Number(limit) };
}

export const pageOf = <T extends TSchema>(item: T) =>
  t.Object({ items: t.Array(item), next_cursor: nullable(t.String()) }, closed);
