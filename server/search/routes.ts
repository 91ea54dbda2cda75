import { Elysia, t } from "elysia";
import { mostFound, rankedOfType, searchAll } from "../../core/incident/search/search.ts";
import { searchedTypes } from "../../core/incident/search/searched.ts";
import { longestQuery } from "../../core/list/page.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";
import { closed, id, nullable } from "../http/schema.ts";

const searchQuery = t.Object(
  {
    q: t.String({
      minLength: 1,
      maxLength: longestQuery,
      description: `Words to find: \`disk "full up" -test\`. Of each type, the newest ${rankedOfType} that match are ranked`,
    }),
    type: t.Optional(
      t.String({ maxLength: 200, description: `All, or some of: \`${searchedTypes.join(",")}\`` }),
    ),
    limit: t.Optional(
      t.String({ pattern: "^[1-9][0-9]?$", description: `1 to ${mostFound}; 20 unless given` }),
    ),
  },
  closed,
);

export const found = t.Object(
  {
    type: t.UnionEnum(searchedTypes),
    id,
    title: t.String(),
    excerpt: t.String({ description: "Plain text: a short one whole, a long one around the words" }),
    incident_id: nullable(id),
    rank: t.Number(),
  },
  closed,
);

/**
 * Shaped like other lists, but with one page: the best of the newest matches of each type. To get more of one type, use
 * its list with `q`.
 */
const foundPage = t.Object({ items: t.Array(found), next_cursor: t.Null() }, closed);

/** Searches everything that the actor may read. */
export const searchRoutes = (deps: Deps) =>
  new Elysia({ name: "search" }).use(actorMacro(deps)).get(
    "/search",
    async ({ actor, query }) => {
      const { q, type, limit } = query;
      const wanted = { q, type, limit: limit === undefined ? undefined : Number(limit) };
      return { items: await searchAll(deps, actor, wanted), next_cursor: null };
    },
    {
      actor: true,
      query: searchQuery,
      response: { 200: foundPage, 400: problemSchema, 401: problemSchema, 403: problemSchema },
      detail: { summary: "Search everything" },
    },
  );
