import { and, asc, desc, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { InvalidInput } from "../errors.ts";
import { parseText } from "../text.ts";
import { type Key, type KeyKind, readCursor, writeCursor } from "./cursor.ts";

// Terminology. A list shows the records of one table, page by page. A sort is a column to go by, forwards or (`-name`)
// backwards; the id breaks its ties, so that every record has one place. The key of a record is its value in that
// column. A cursor is the place of the last record shown: the next page begins behind it, whatever was inserted or
// deleted meanwhile, and no record is shown twice or left out.

const defaultLimit = 50;
export const largestLimit = 200;
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
  /** The search vector, for `q`. */
  search: PgColumn;
  sorts: Readonly<Record<Sort, { by: PgColumn; kind: KeyKind }>>;
  /** Without `q`; with it, the best match comes first. */
  defaultSort: Sort | `-${Sort}`;
}

/** Goes into a SELECT: `{ item, key: page.key }`, `where`, `orderBy`, `limit`; and `finish` makes a page of its rows. */
export interface Page {
  key: SQL<Key>;
  where: SQL | undefined;
  orderBy: SQL[];
  /** One more than is shown, which tells whether there is a next page. */
  limit: number;
  finish<Item extends { id: number }>(
    rows: readonly { item: Item; key: Key }[],
  ): { items: Item[]; next_cursor: string | null };
}

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
    throw new InvalidInput("limit", `The limit is a number from 1 to ${largestLimit}`);
  const q = query.q === undefined ? undefined : parseText("q", query.q, longestQuery);
  const words = sql`websearch_to_tsquery('pg_catalog.english', ${q})`;
  const { name, by, kind, backwards } = sortOf(list, query.sort, words, q !== undefined);

  const binding = JSON.stringify([list.name, name, q ?? null, Object.entries(filters).sort()]);
  const behind = query.cursor === undefined ? undefined : readCursor(query.cursor, binding, kind);
  const direction = backwards ? desc : asc;
  const key = by as SQL<Key>;
  return {
    key,
    where: and(
      q === undefined ? undefined : sql`${list.search} @@ ${words}`,
      behind &&
        sql`(${by}, ${list.id}) ${backwards ? sql`<` : sql`>`} (${behind.key}${casts[kind]}, ${behind.id})`,
    ),
    orderBy: [direction(by), direction(list.id)],
    limit: limit + 1,
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
