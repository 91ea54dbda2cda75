import { and, type Placeholder, type SQL, sql } from "drizzle-orm";
import { InvalidInput } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { literal, newestMatches } from "../../list/newest.ts";
import { parseWords, wordsOf } from "../../list/page.ts";
import { type AnyReader, preparedForReaders, type Reader } from "../visibility/visibility.ts";
import { type Searched, type SearchedType, searched, searchedTypes } from "./searched.ts";

const defaultLimit = 20;
export const mostFound = 50;
/** How many of the newest matches of each type are ranked: twice the maximum that is shown. */
export const rankedOfType = 100;
/** Maximum characters of a title, and of a text that is searched for an excerpt. */
const titleLength = 200;
const excerptedLength = 5000;
/** Characters. An excerpt of a short text would leave out words at its ends, such as those that are too common to be found. */
const shownWhole = 200;

export interface Found {
  type: SearchedType;
  id: number;
  title: string;
  /** A short text whole; of a long one, a few words around the matches, with `…` where it continues. */
  excerpt: string;
  incident_id: number | null;
  /** 0 to 1. Higher is better. */
  rank: number;
}

export interface SearchQuery {
  q: string;
  /** Type names separated by commas. All types by default. */
  type?: string;
  limit?: number;
}

/**
 * Returns the best of the newest matches of each type, best first. There are no further pages: each type's list has
 * them, with the same words.
 *
 * @throws InvalidInput for `q`, `type` or `limit`
 */
export async function searchAll({ db }: Context, actor: Actor, query: SearchQuery): Promise<Found[]> {
  const { limit = defaultLimit } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > mostFound)
    throw new InvalidInput("limit", `The limit must be a number from 1 to ${mostFound}`);
  const q = parseWords(query.q);
  const types = query.type === undefined ? searchedTypes : [...new Set(query.type.split(","))].map(parseType);
  // Planning all these searches in one takes longer than running them, so the plan of the most common query is kept.
  return query.type === undefined && limit === defaultLimit
    ? await everything(db, actor).execute({ q, reader: actor.user })
    : await selectBest(db, { types, q, reader: actor, limit });
}

interface Search {
  types: readonly SearchedType[];
  q: string | Placeholder<"q">;
  reader: Reader | AnyReader;
  limit: number;
}

const everything = preparedForReaders((db, reader) =>
  selectBest(db, { types: searchedTypes, q: sql.placeholder("q"), reader, limit: defaultLimit }).prepare(
    "search",
  ),
);

function selectBest(db: Context["db"], search: Search) {
  const best = search.types.map((type) => bestOf(type, searched[type], search));
  // ts_headline reads the whole text, so it runs only on what is shown. The words are not marked, since the rest is not
  // escaped.
  return db
    .select({
      type: sql<SearchedType>`type`,
      id: sql<number>`id::float8`,
      rank: sql<number>`rank`,
      title: sql<string>`left(title, ${literal(titleLength)})`,
      excerpt: sql<string>`case when length(text) <= ${literal(shownWhole)} then btrim(text) else
        case when starts_with(text, words) then '' else '… ' end || words
        || case when right(text, length(words)) = words then '' else ' …' end end`,
      incident_id: sql<number | null>`incident_id::float8`,
    })
    .from(
      sql`(select * from (${sql.join(best, sql` union all `)}) as best
        order by rank desc, type, id desc limit ${literal(search.limit)}) as found
        cross join lateral (select ts_headline('pg_catalog.english', left(text, ${literal(excerptedLength)}),
          ${wordsOf(search.q)}, 'StartSel="", StopSel="", MaxFragments=1, MaxWords=30, MinWords=10') as words) as around`,
    )
    .orderBy(sql`rank desc, type, id desc`);
}

function bestOf(type: SearchedType, of: Searched, { q, reader, limit }: Search): SQL {
  const { table, title, text, only, incidentId = sql`null::bigint` } = of;
  const { id, search } = table;
  const words = wordsOf(q);
  const window = newestMatches(id, and(sql`${search} @@ ${words}`, only)!, of.found(reader), {
    ranked: rankedOfType,
    short: !of.large,
    kinds: of.kinds?.(reader),
  });
  // Title and text are read only for the best matches, not for all ranked ones.
  return sql`(
    select ${literalText(type)} as type, ${id} as id, ${title} as title, ${text} as text, ${incidentId} as incident_id, rank
    from (
      select ${id} as found, ts_rank(${search}, ${words}) as rank
      from ${table} where ${window} order by rank desc, ${id} desc limit ${literal(limit)}) as ranked
    cross join lateral (select * from ${table} where ${id} = ranked.found offset 0) as ${table})`;
}

/** A literal, because PostgreSQL cannot infer the type of a parameter in a union. The value is ours. */
const literalText = (type: SearchedType) => sql.raw(`'${type}'::text`);

function parseType(name: string): SearchedType {
  const type = searchedTypes.find((known) => known === name);
  if (!type) throw new InvalidInput("type", `The types are ${searchedTypes.join(", ")}, separated by commas`);
  return type;
}
