// The newest matches of a search, without reading all matches of a common word, as a plain query does, or all of the newest
// records for a rare one. Only words in old or hidden records alone cost more pages than the plain query.

import { and, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { blockBits, blockOf } from "../../drizzle/schema/columns.ts";

/**
 * A search looks at this many of the newest records first, one by one, for each match that is wanted: a word in one of
 * five fills the window there.
 */
const newestPerMatch = 5;
/**
 * If a word does not fill the window there, and at most this many windows of matches are expected, all of them are
 * looked up in the word index, which is slow, since most are on different pages. If more are expected, only the
 * newest blocks of ids are looked up: as many as `nearWindows` windows need, if the matches are as dense there as among
 * the newest records.
 */
const rareWindows = 6;
const nearWindows = 2;
/**
 * The newest records may differ from all others, such as after hundreds of reports of one failure. So the word index first
 * counts the matches in blocks at growing distances: each about twice as far as the one before, this many. If these fill
 * the window, the word is common, and blocks are looked up, from one on.
 */
const sampledBlocks = 12;
/**
 * If that is not enough, older blocks follow: a quarter as many as were looked up, so that a word that begins to occur
 * there is not read far beyond the window. The number is limited, because all their records may match.
 */
const mostBlocks = 16;
/** With more matches than expected, it also goes by blocks: such a word used to be common and is rare now. */
const lookedUpMatches = 10_000;
/**
 * Among the matches in some blocks, the newest of this many windows are checked one by one for visibility. If that is
 * not enough, nearly all are hidden: PostgreSQL then checks all of them at once, at a fifth of the cost.
 */
const askedWindows = 6;

interface Newest {
  /** How many matches are wanted. */
  ranked: number;
  /** The condition matches few records: PostgreSQL decides where to begin. */
  filtered?: boolean;
  /**
   * The table is short: matches that are not among the newest records are looked up at once, because planning takes
   * longer.
   */
  short?: boolean;
  /** The records that `condition` allows are these two kinds: those with a word index of their own, and few others. */
  kinds?: { open: SQL; theirs: SQL };
}

/**
 * Matches the newest matches among the records of `condition`. Walking backwards is fast for common words, the word
 * index for rare ones, and the newest records tell which a word is. For indexed matches, `condition` is checked only
 * for the newest, unless it is `filtered`. None is dropped before that, or hidden records would displace visible ones.
 * If hidden ones do crowd the result, all are checked at once.
 *
 * The word index of a table that grows large also contains the blocks of ids (`blockOf`).
 */
export function newestMatches(
  id: PgColumn,
  words: SQL,
  condition: SQL | undefined,
  { ranked, filtered = false, short = false, kinds }: Newest,
): SQL {
  const { table } = id;
  const matches = kinds ? and(words, kinds.open)! : words;
  const newestRecords = newestPerMatch * ranked;
  const some = and(matches, condition);
  const found = sql.identifier("found");
  const most = literal(ranked);
  const lookedUp = (where: SQL) => sql`
    select ${id} as ${found} from ${table} where ${where} and ${filtered ? some : matches} offset 0`;
  const newestOf = (matching: SQL) =>
    filtered
      ? sql`select ${found} from (${matching}) as matching order by 1 desc limit ${most}`
      : sql`select ${found} from (select ${found} from (${matching}) as matching order by 1 desc offset 0) as matching
        cross join lateral (select * from ${table} where ${id} = matching.${found} offset 0) as ${table}
        where ${condition ?? sql`true`} order by 1 desc limit ${most}`;
  const newest = sql`newest as materialized (
    select ${id} as ${found} from (select * from ${table} order by ${id} desc limit ${literal(newestRecords)}) as ${table}
    where ${some} order by ${id} desc limit ${most})`;
  if (short)
    return sql`${id} in (
      with ${newest},
      looked_up as materialized (${newestOf(lookedUp(sql`(select count(*) < ${most} from newest)`))})
      select ${found} from (select ${found} from newest union select ${found} from looked_up) as matching
      order by 1 desc limit ${most})`;
  const [bits, widest] = [literal(blockBits), literal(mostBlocks)];
  const [cut, asked] = [literal(lookedUpMatches), literal(askedWindows * ranked)];
  const wide = sql`least(${widest}, 1 + ((${literal(nearWindows * ranked * newestRecords)} / matches) >> ${bits}))`;
  const inBlocks = (last: SQL, count: SQL) =>
    sql`${blockOf(id)} && array(select generate_series(${last} - ${count} + 1, ${last}))`;
  const inNext = lookedUp(inBlocks(sql`block`, sql`wide`));
  const matching = filtered
    ? newestOf(inNext)
    : sql`select ${found} from (${inNext}) as matching order by 1 desc limit ${asked} + 1`;
  const shown = filtered ? sql`matching` : sql`array(${newestOf(sql`select unnest(matching) as ${found}`)})`;
  const judged = (records: SQL, where: SQL) => sql`
    select ${found} from (
      select ${id} as ${found} from (
        select ${table}.* from ${records} where ${where} and ${matches} offset 0) as ${table}
      where ${condition ?? sql`true`}) as matching
    order by 1 desc limit ${most}`;
  // The series has one element. PostgreSQL assumes a long one, or it would go through the incidents one by one.
  const many = sql`${table} cross join generate_series(1, (select 1))`;
  // With `filtered`, the condition was checked before.
  const crowdedSteps = sql`,
    crowd as materialized (select below as block, cardinality(ids) as above from near where crowded),
    behind as materialized (
      ${judged(many, sql`(select true from crowd) and ${inBlocks(sql`(select block from crowd)`, widest)}`)}),
    rest as materialized (
      ${judged(sql`${table}`, sql`(select above + (select count(*) from behind) < ${most} from crowd)`)})`;
  const ofCrowd = sql`union select ${found} from behind union select ${found} from rest`;
  const ofTheirs = kinds
    ? sql`union select ${id} from (select * from ${table} where ${kinds.theirs} offset 0) as ${table}
        where ${and(words, condition)}`
    : sql``;
  const sample = sql`array(
    select (last >> ${bits}) - (1 << step) + 1 from first cross join generate_series(0, ${literal(sampledBlocks - 1)}) as step
    where matches < ${most} and not common and last >> ${bits} >= (1 << step) - 1)`;
  // Each step has the newest matches up to some point, so together they are those of the step that came farthest. For
  // each comparison in the recursion (`below > 0`), PostgreSQL expects a third of the rounds: where JIT is available,
  // it compiles a plan that it considers expensive each time, which takes longer than any search.
  return sql`${id} in (
    with recursive ${newest},
    first as materialized (
      select matches, last, matches * last >= ${literal(rareWindows * ranked * newestRecords)} as common
      from (select count(*) as matches, (select max(${id}) from ${table}) as last from newest) as newest),
    sampled as materialized (
      select count(*) >= ${most} as dense from (${lookedUp(sql`${blockOf(id)} && ${sample}`)} limit ${most}) as matching),
    listed as materialized (
      select array(${lookedUp(sql`(select matches < ${most} and not (common or dense) from first, sampled)`)} limit ${cut} + 1) as ids),
    looked_up as materialized (
      ${newestOf(sql`select unnest(ids) as ${found} from listed where cardinality(ids) <= ${cut}`)}),
    near (below, wide, crowded, ids) as (
      select last + 1, case when common then ${wide} else 1 end, false, '{}'::bigint[] from first
      where matches < ${most} and (common or (select dense or cardinality(ids) > ${cut} from sampled, listed))
      union all
      select case when crowds then block else (block - wide + 1) << ${bits} end, 
        least(greatest(wide, (((select last from first) >> ${bits}) - block + wide) / 4), ${widest}), crowds,
        case when crowds then ids else ids || shown end
      from near cross join lateral (
        select max(${id}) >> ${bits} as block from ${table} where ${id} < below) as next
      cross join lateral (select array(${matching}) as matching offset 0) as matching
      cross join lateral (select ${shown} as shown offset 0) as shown
      cross join lateral (
        select cardinality(matching) > ${asked} and cardinality(ids || shown) < ${most} as crowds offset 0) as crowds
      where cardinality(ids) < ${most} and below > 0 and not crowded and block is not null)${filtered ? sql`` : crowdedSteps}
    select ${found} from (
      select ${found} from newest union select ${found} from looked_up union select unnest(ids) from near
      ${filtered ? sql`` : ofCrowd} ${ofTheirs}) as matching
    order by 1 desc limit ${most})`;
}

/** A literal, because PostgreSQL does not keep a plan with an unknown limit. */
export function literal(value: number): SQL {
  return sql.raw(String(Math.trunc(value)));
}
