import { type SchemaOptions, type TProperties, Type } from "@sinclair/typebox";
import { type TSchema, t } from "elysia";
import { largestLimit, longestQuery, rankedMatches } from "../../core/list/page.ts";

// Schemas shared by all resources. Objects are closed: an unknown name is an error, in answers as well.

export const closed = { additionalProperties: false } as const;

export const nullable = <T extends TSchema>(schema: T) => t.Union([schema, t.Null()]);

/** One of these texts. Elysia's `t.UnionEnum` would default to the first. */
export const oneOf = <T extends string>(values: readonly T[], options: SchemaOptions = {}) =>
  Type.Unsafe<T>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      options,
    ),
  );

/** An id in a body. This is TypeBox's type, because Elysia's `t.Integer` accepts texts as well. */
export const id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
/** An id in a path or query, as text: Elysia's numbers also accept `0x10`, and their errors say `body`. */
export const idText = t.String({ pattern: "^[1-9][0-9]{0,14}$" });
/** The id of an event as clients send it back, as text for the same reason; 0 means before the first one. */
export const cursorPattern = "^(0|[1-9][0-9]{0,14})$";
/** An incident in a path: its id or its name. `actorMacro` replaces a name by the id, unless it is the incident that is read. */
export const incidentText = t.String({
  pattern: "^([1-9][0-9]{0,14}|[Ii][Nn][Cc]-[1-9][0-9]{0,18})$",
  description: "The id, or the name in upper or lower case: `44`, `INC-44`",
});
/** A limit in a query, as text for the same reason. Core refuses more than the maximum. */
export const limitText = t.String({
  pattern: "^[0-9]{1,9}$",
  description: `1 to ${largestLimit}; 50 unless given`,
});
/** A PostgreSQL integer. */
export const version = Type.Integer({ minimum: 1, maximum: 2_147_483_646 });
export const instant = t.String({ format: "date-time" });

/**
 * Fields that a GET returns in addition to those that a PUT replaces (`written`). A PUT accepts and ignores them, so
 * that a record can be sent back as it was read, although costs and steps change meanwhile. The types omit them,
 * because they must not be used.
 */
export function readOnly(view: Record<string, TSchema>, written: Record<string, TSchema>): object {
  const names = Object.keys(view).filter((name) => !(name in written));
  return Object.fromEntries(names.map((name) => [name, t.Optional({ ...view[name]!, readOnly: true })]));
}

/** The parameter of a list that can be searched. */
export const q = t.Optional(
  t.String({
    maxLength: longestQuery,
    description: `Words to find: \`disk "full up" -test\`. Listed are the newest ${rankedMatches} matches, the best first`,
  }),
);

/** The parameters of a list. `sort` describes what it can be sorted by. */
export const listQuery = <Filters extends TProperties>(sort: string, filters = {} as Filters) =>
  t.Object(
    {
      limit: t.Optional(limitText),
      cursor: t.Optional(t.String({ description: "`next_cursor` of the page before" })),
      sort: t.Optional(t.String({ description: sort })),
      ...filters,
    },
    closed,
  );

/** Converts the parameters for core. */
export function listQueryOf(query: { q?: string; sort?: string; limit?: string; cursor?: string }) {
  const { q, sort, limit, cursor } = query;
  return { q, sort, cursor, limit: limit === undefined ? undefined : Number(limit) };
}

export const pageOf = <T extends TSchema>(item: T) =>
  t.Object({ items: t.Array(item), next_cursor: nullable(t.String()) }, closed);
