import { and, asc, between, desc, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { boundOf } from "../../drizzle/endless.ts";
import { preparedQuery } from "../../drizzle/prepared_query.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { parseText } from "../../platform/text.ts";
import type { Actor, Context } from "../context.ts";
import { type AnyReader, anyReader, type Reader } from "../incident/visibility/visibility.ts";
import { type Key, type KeyKind, type Place, type RankKey, readCursor, writeCursor } from "./cursor.ts";
import { literal, newestMatches } from "./newest.ts";

// Terminology. A list shows the records of one table, page by page. A sort is a column to go by, forwards or (`-name`)
// backwards; the id breaks its ties, so that every record has one place. The key of a record is its value in that
// column. A cursor is the place of the last record shown: the next page begins behind it, whatever was inserted or
// deleted meanwhile, and no record is shown twice or left out.
//
// A search ranks the newest of its matches (the window), whatever else matches: ranking all that have a common word
// takes longer the more there are. Its cursor holds the ids at both ends of the window that the first page saw.

const defaultLimit = 50;
export const largestLimit = 200;
/** Matches that a search ranks: four pages of fifty. */
export const rankedMatches = 200;
/** Characters of a search: more than people type, less than what makes PostgreSQL work for long. */
export const longestQuery = 500;

/** What a caller may say about every list. */
export interface ListQuery {
  /** Words to look for, as in a web search: `disk "full up" -test or backup`. */
  q?: string;
  sort?: string;
  limit?: number;
  cursor?: string;
}

/** A list of one table. A sort needs a column without nulls and an index on (column, id). */
export interface List<Sort extends string> {
  /** Names the list in its cursors. */
  name: string;
  id: PgColumn;
  /** The search vector, for `q`; a list without one takes none. */
  search?: PgColumn;
  sorts: Readonly<Record<Sort, { by: PgColumn; kind: KeyKind }>>;
  /** Without `q`; with it, the best match comes first. */
  defaultSort: Sort | `-${Sort}`;
}

interface Select<Rows> extends PromiseLike<Rows> {
  prepare(name: string): Prepared<Rows>;
}

interface Prepared<Rows> {
  execute(values?: { reader: string }): Promise<Rows>;
}

/** Goes into a SELECT: `{ item, key: page.key }`, `within`, `orderBy`, `limit`; and `finish` makes a page of its rows. */
export interface Page {
  key: SQL<Key>;
  /**
   * The WHERE of the page, among the records of `condition`: what the actor may read, and the filters. All of it goes in
   * here, for what is hidden or filtered out takes no place in a search's window. It names no table but the list's own.
   */
  within(condition?: SQL): SQL | undefined;
  orderBy: SQL[];
  /** One more than is shown, which tells whether there is a next page. */
  limit: number;
  /**
   * Runs the SELECT that `select` makes. The plan is kept of the one without search, filters and limit, which everybody
   * reads all the time: to make it takes longer than to follow it. So is the SELECT of the first page. Of all others there
   * are too many.
   */
  run<Rows>(
    db: Context["db"],
    actor: Actor,
    select: (reader: Reader | AnyReader) => Select<Rows>,
  ): PromiseLike<Rows>;
  finish<Item extends { id: number }>(
    rows: readonly { item: Item; key: Key }[],
  ): { items: Item[]; next_cursor: string | null };
}

/** By list, sort, and whether admins read. */
const firstPages = preparedQuery(() => new Map<string, Prepared<unknown>>());

/**
 * What to ask the database for. `filters` are the other parameters of the query: a cursor is good only with the same
 * ones.
 *
 * @throws InvalidInput naming `q`, `sort`, `limit` or `cursor`
 */
export function startPage<Sort extends string>(
  list: List<Sort>,
  query: ListQuery,
  filters: Readonly<Record<string, string | number | undefined>>,
): Page {
  const { limit = defaultLimit } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > largestLimit)
    throw new InvalidInput("limit", `The limit must be a number from 1 to ${largestLimit}`);
  // A form with an empty field sends an empty text: it looks for nothing.
  const q = query.q === undefined || query.q.trim() === "" ? undefined : parseWords(query.q);
  if (q !== undefined && !list.search) throw new InvalidInput("q", "This list cannot be searched");
  const words = wordsOf(q);
  const { name, by, kind, backwards } = sortOf(list, query.sort, words, q !== undefined);

  const filtered = Object.values(filters).some((value) => value !== undefined);
  const plain = limit === defaultLimit && q === undefined && !filtered;
  const binding = JSON.stringify([list.name, name, q ?? null, Object.entries(filters).sort()]);
  const behind = query.cursor === undefined ? undefined : readCursor(query.cursor, binding, kind);
  const direction = backwards ? desc : asc;
  const matches = q === undefined ? undefined : sql`${list.search} @@ ${words}`;
  const window = kind === "rank" ? windowOf(behind?.key) : undefined;
  const next =
    behind &&
    sql`(${by}, ${list.id}) ${backwards ? sql`<` : sql`>`} (${placeOf(list, by, behind)}${casts[kind]}, ${behind.id})`;
  return {
    key: kind === "rank" ? rankKey(list.id, by, window) : (by as SQL<Key>),
    within: (condition) => {
      if (!matches || kind !== "rank") return and(matches, condition, next);
      if (!window) return newestMatches(list.id, matches, condition, { ranked: rankedMatches, filtered });
      return and(matches, between(list.id, window.oldest, window.newest), condition, next);
    },
    orderBy: [direction(by), direction(list.id)],
    // drizzle makes a parameter of a number.
    limit: literal(limit + 1) as SQL & number,
    run<Rows>(db: Context["db"], actor: Actor, select: (reader: Reader | AnyReader) => Select<Rows>) {
      if (!plain) return select(actor);
      if (behind) return select(actor).prepare(list.name).execute();
      const pages = firstPages(db);
      const first = `${list.name} ${name} ${actor.admin}`;
      const page = pages.get(first) ?? select(anyReader(actor.admin)).prepare(list.name);
      pages.set(first, page);
      return (page as Prepared<Rows>).execute({ reader: actor.user });
    },
    finish: (rows) => {
      const shown = rows.slice(0, limit);
      const last = rows.length > limit ? shown.at(-1) : undefined;
      return {
        items: shown.map(({ item }) => item),
        next_cursor: last ? writeCursor(binding, { key: last.key, id: last.item.id }) : null,
      };
    },
  };
}

/** The ids at the ends of what a search ranks. */
interface Window {
  newest: number;
  oldest: number;
}

/** What the key of a cursor is compared as. One that stands for several times is read again from its record. */
function placeOf({ id }: { id: PgColumn }, by: SQL, behind: Place<string | number | RankKey>): SQL {
  const { key } = behind;
  if (Array.isArray(key)) return sql`${key[0]}`;
  const bound = typeof key === "string" ? boundOf(key) : undefined;
  if (bound === undefined) return sql`${key}`;
  return sql`coalesce((select ${by} from ${id.table} where ${id} = ${behind.id}), ${bound})`;
}

function windowOf(key: string | number | RankKey | undefined): Window | undefined {
  if (!Array.isArray(key)) return undefined;
  const [, newest, oldest] = key;
  return { newest, oldest };
}

/** On the first page, the window is all that the query sees; afterwards, what the cursor says. */
function rankKey(id: PgColumn, rank: SQL, window: Window | undefined): SQL<Key> {
  const newest = window ? sql`${window.newest}::bigint` : sql`max(${id}) over ()`;
  const oldest = window ? sql`${window.oldest}::bigint` : sql`min(${id}) over ()`;
  // Nested, or drizzle takes away the table's name.
  return sql`${sql`json_build_array(${rank}, ${newest}, ${oldest})`}`;
}

/**
 * What somebody looks for, fit for PostgreSQL: it reads each hyphen before a word as a "not", and fails for want of space
 * (XX000) when 33 of them stand in a row, as in a line of hyphens. Space and some signs between them count for nothing,
 * and what is space the database's locale says: here, all that is no part of a word and no quotation mark does.
 *
 * @throws InvalidInput
 */
export function parseWords(q: string): string {
  return parseText("q", q, longestQuery).replace(/-(?:[^\p{L}\p{N}"-]*-){8,}/gu, "-");
}

/**
 * What a search looks for. A sub-select, so that PostgreSQL plans for words that it does not know: it would guess how
 * common they are, and guess wrong for all that it has no statistics of. So it can keep the plan, too.
 */
export function wordsOf(q: string | Placeholder | undefined): SQL {
  return sql`(select websearch_to_tsquery('pg_catalog.english', ${q}))`;
}

/** What PostgreSQL is told a key in a comparison is. */
const casts: Record<KeyKind, SQL> = {
  text: sql`::text`,
  id: sql`::bigint`,
  rank: sql`::real`,
  instant: sql`::timestamptz`,
};

interface ChosenSort {
  name: string;
  by: SQL;
  kind: KeyKind;
  backwards: boolean;
}

function sortOf<Sort extends string>(
  list: List<Sort>,
  asked: string | undefined,
  words: SQL,
  searching: boolean,
): ChosenSort {
  if (asked === undefined && searching) {
    // No other record's text changes a record's rank, so insertion moves none.
    return { name: "rank", by: sql`ts_rank(${list.search}, ${words})`, kind: "rank", backwards: true };
  }
  const name = asked ?? list.defaultSort;
  const backwards = name.startsWith("-");
  const column = backwards ? name.slice(1) : name;
  if (!Object.hasOwn(list.sorts, column)) {
    const known = Object.keys(list.sorts).flatMap((sort) => [sort, `-${sort}`]);
    throw new InvalidInput("sort", `This list sorts by ${known.join(", ")}`);
  }
  const { by, kind } = list.sorts[column as Sort];
  return { name, by: sql`${by}`.mapWith(by), kind, backwards };
}
