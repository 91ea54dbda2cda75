import { and, asc, between, desc, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { preparedQuery, withQuickRows } from "../../drizzle/prepared_query.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { parseText } from "../../platform/text.ts";
import type { Actor, Context } from "../context.ts";
import {
  type AnyReader,
  anyReader,
  type IncidentRef,
  type Reader,
} from "../incident/visibility/visibility.ts";
import { type Key, type KeyKind, type Place, type RankKey, readCursor, writeCursor } from "./cursor.ts";
import { literal, newestMatches } from "./newest.ts";

// Terminology. A list shows the records of one table, page by page. A sort is a column to order by, forwards or
// (`-name`) backwards. The id breaks ties, so that every record has one place. The key of a record is its value in that
// column. A cursor is the place of the last record shown: the next page begins after it, whatever was inserted or
// deleted meanwhile, and no record is shown twice or left out.
//
// A search ranks the newest of its matches (the window), however many match: ranking all records with a common word
// takes longer the more there are. Its cursor holds the ids at both ends of the window that the first page saw.

const defaultLimit = 50;
/** Of the lists on the page of an incident. */
export const pageLimit = 100;
export const largestLimit = 200;
/** How many matches a search ranks: four pages of fifty. */
export const rankedMatches = 200;
/** Maximum characters of a search: more than people type, less than keeps PostgreSQL busy for long. */
export const longestQuery = 500;

/** The parameters of every list. */
export interface ListQuery {
  /** Words to look for, as in a web search: `disk "full up" -test or backup`. */
  q?: string;
  sort?: string;
  limit?: number;
  cursor?: string;
}

/** A list of one table. A sort needs a column without nulls and an index on (column, id). */
export interface List<Sort extends string> {
  /** Identifies the list in its cursors. */
  name: string;
  id: PgColumn;
  /** The search vector for `q`. A list without one cannot be searched. */
  search?: PgColumn;
  sorts: Readonly<Record<Sort, { by: PgColumn; kind: KeyKind }>>;
  /** Without `q`. With it, the best match comes first. */
  defaultSort: Sort | `-${Sort}`;
}

interface Select<Rows> extends PromiseLike<Rows> {
  prepare(name: string): Prepared<Rows>;
}

interface Prepared<Rows> {
  execute(values?: { reader: string; incidentId?: number }): Promise<Rows>;
}

/** Parts of a SELECT: `{ item, key: page.key }`, `within`, `orderBy`, `limit`. `finish` makes a page of its rows. */
export interface Page {
  key: SQL<Key>;
  /**
   * The WHERE of the page, among the records of `condition`: what the actor may read, and the filters. All of it
   * belongs here, because hidden and filtered records must not count towards a search's window. It may name only the
   * list's table.
   */
  within(condition?: SQL, kinds?: { open: SQL; theirs: SQL }): SQL | undefined;
  orderBy: SQL[];
  /** One more than is shown, to find out whether there is a next page. */
  limit: number;
  /**
   * Runs the SELECT that `select` makes. The plan without search and filters, or for one incident, is kept: everybody uses
   * it all the time, and planning takes longer than running it. The SELECT of the first page is kept, too. There are too
   * many of the others.
   */
  run<Rows>(
    db: Context["db"],
    actor: Actor,
    select: (reader: Reader | AnyReader, of: IncidentRef) => Select<Rows>,
  ): PromiseLike<Rows>;
  finish<Item extends { id: number }>(
    rows: readonly { item: Item; key: Key }[],
  ): { items: Item[]; next_cursor: string | null };
}

/** By list, sort, limit, whether the reader is an admin, and whether it is of one incident. */
const firstPages = preparedQuery(() => new Map<string, Prepared<unknown>>());

/**
 * Returns what to select. `filters` are the query's other parameters: a cursor is valid only with the same ones.
 *
 * @throws InvalidInput for `q`, `sort`, `limit` or `cursor`
 */
export function startPage<Sort extends string>(
  list: List<Sort>,
  query: ListQuery,
  filters: Readonly<Record<string, string | number | undefined>> & { incidentId?: number },
): Page {
  const { limit = defaultLimit } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > largestLimit)
    throw new InvalidInput("limit", `The limit must be a number from 1 to ${largestLimit}`);
  // A form with an empty field sends an empty string, which is no search.
  const q = query.q === undefined || query.q.trim() === "" ? undefined : parseWords(query.q);
  if (q !== undefined && !list.search) throw new InvalidInput("q", "This list cannot be searched");
  const words = wordsOf(q);
  const { name, by, kind, backwards } = sortOf(list, query.sort, words, q !== undefined);

  const filtered = Object.values(filters).some((value) => value !== undefined);
  const { incidentId, ...others } = filters;
  const plain =
    (limit === defaultLimit || limit === pageLimit) &&
    q === undefined &&
    Object.values(others).every((value) => value === undefined);
  const binding = JSON.stringify([list.name, name, q ?? null, Object.entries(filters).sort()]);
  const cursor = query.cursor === undefined ? undefined : readCursor(query.cursor, binding, kind);
  const direction = backwards ? desc : asc;
  const matches = q === undefined ? undefined : sql`${list.search} @@ ${words}`;
  const window = kind === "rank" ? windowOf(cursor?.key) : undefined;
  const next =
    cursor &&
    sql`(${by}, ${list.id}) ${backwards ? sql`<` : sql`>`} (${placeOf(list, by, kind, cursor)}, ${cursor.id})`;
  return {
    key: kind === "rank" ? rankKey(list.id, by, window) : (by as SQL<Key>),
    within: (condition, kinds) => {
      if (!matches || kind !== "rank") return and(matches, condition, next);
      if (!window)
        return newestMatches(list.id, matches, condition, { ranked: rankedMatches, filtered, kinds });
      return and(matches, between(list.id, window.oldest, window.newest), condition, next);
    },
    orderBy: [direction(by), direction(list.id)],
    // drizzle turns a number into a parameter.
    limit: literal(limit + 1) as SQL & number,
    run<Rows>(
      db: Context["db"],
      actor: Actor,
      select: (reader: Reader | AnyReader, of: IncidentRef) => Select<Rows>,
    ) {
      const id = incidentId as number;
      if (!plain) return select(actor, id);
      if (cursor) return select(actor, id).prepare(list.name).execute();
      const pages = firstPages(db);
      const first = `${list.name} ${name} ${limit} ${actor.admin} ${incidentId !== undefined}`;
      const make = () => select(anyReader(actor.admin), sql.placeholder("incidentId")).prepare(list.name);
      const page = pages.get(first) ?? withQuickRows(make());
      pages.set(first, page);
      return (page as Prepared<Rows>).execute({ reader: actor.user, incidentId });
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

/** The ids at the ends of the ranked matches. */
interface Window {
  newest: number;
  oldest: number;
}

/**
 * The value with which keys are compared. A time stands for a whole millisecond, so it is read again from its record,
 * unless that has been changed to another time since.
 */
function placeOf(
  { id }: { id: PgColumn },
  by: SQL,
  kind: KeyKind,
  cursor: Place<string | number | RankKey>,
): SQL {
  const key = sql`${Array.isArray(cursor.key) ? cursor.key[0] : cursor.key}${casts[kind]}`;
  if (kind !== "instant") return key;
  const millisecond = sql`interval '1 millisecond'`;
  const same = sql`${by} between ${key} - ${millisecond} and ${key} + ${millisecond}`;
  const exact = sql`select ${by} from ${id.table} where ${id} = ${cursor.id} and ${same}`;
  return sql`coalesce((${exact}), ${key})`;
}

function windowOf(key: string | number | RankKey | undefined): Window | undefined {
  if (!Array.isArray(key)) return undefined;
  const [, newest, oldest] = key;
  return { newest, oldest };
}

/** On the first page, the window is what the query sees. Later it comes from the cursor. */
function rankKey(id: PgColumn, rank: SQL, window: Window | undefined): SQL<Key> {
  const newest = window ? sql`${window.newest}::bigint` : sql`max(${id}) over ()`;
  const oldest = window ? sql`${window.oldest}::bigint` : sql`min(${id}) over ()`;
  // Nested, because drizzle would otherwise drop the table's name.
  return sql`${sql`json_build_array(${rank}, ${newest}, ${oldest})`}`;
}

/**
 * Prepares a search for PostgreSQL, which reads each hyphen before a word as "not", and fails with XX000 for lack of
 * space when 33 of them follow each other, as in a line of hyphens. It ignores space and some signs between them. What
 * counts as space depends on the database's locale, so here everything does that is not part of a word or a quotation
 * mark.
 *
 * It also splits an address after `https:`, but stores that of a text without it.
 *
 * @throws InvalidInput
 */
export function parseWords(q: string): string {
  return parseText("q", q.normalize("NFKC"), longestQuery)
    .replace(/\bhttps?:\/\//gi, "")
    .replace(/-(?:[^\p{L}\p{N}"-]*-){8,}/gu, "-");
}

/**
 * The query of a search. It is a sub-select, so that PostgreSQL plans without knowing the words: otherwise it would
 * guess how common they are, and guess wrong for words without statistics. It can also keep the plan.
 */
export function wordsOf(q: string | Placeholder | undefined): SQL {
  return sql`(select websearch_to_tsquery('pg_catalog.english', ${q}))`;
}

/** The type of a key in a comparison. */
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
    // A record's rank depends only on its own text, so inserting others does not change it.
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
