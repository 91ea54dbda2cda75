// Pages read for the newest 100 matches among 300,000 small documents, a tenth of them hidden (same data, one run): a plain
// `where` ... `order by id desc limit 100`; the newest 1,000 first and then a plain query; and what is written here.
//
//   the word is in          plain   1,000 first   here
//   one of 2                4,503           325    329
//   one of 50               4,485         4,810  1,222
//   one of 5,000               64           316    560
//   the oldest 5 % alone      233           656 12,656
//   hidden ones alone       4,488         4,512 10,397
//   none                        2            24     28
//
// Measured at one size only. For what only old or hidden records have, this one reads up to 54 times as many pages as the
// plain query.

import { and, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { blockBits, blockOf } from "../../drizzle/schema/columns.ts";

/** Newest records in which a search looks first, one after the other: a word of one in five fills a list's window there. */
const newestRecords = 1000;
/**
 * Of a word that does not, all matches are looked up in the index of words, if no more than so many windows are to be
 * expected: up to 4 µs each, for most lie on a page of their own. Of more, those of the newest blocks of ids: as many
 * blocks as it takes for so many windows, if the matches lie as densely there as among the newest records.
 */
const rareWindows = 6;
const nearWindows = 2;
/** When that was not enough, twice as many older blocks; at most these at once, for all their records may have the word. */
const mostBlocks = 16;
/** When so many were not to be expected, it goes by blocks as well: a word that was common once and is rare now. */
const lookedUpMatches = 10_000;
/**
 * Of what is in some blocks, the newest of so many windows are asked one by one whether they are shown. When that was not
 * enough, nearly all is hidden: PostgreSQL then judges what there is at once, at a fifth of the price.
 */
const askedWindows = 6;

interface Newest {
  /** How many. */
  ranked: number;
  /** Few records are of the condition: PostgreSQL decides with what it begins. */
  filtered?: boolean;
  /** The table is: what is not among the newest records is looked up at once. To plan more takes longer. */
  short?: boolean;
}

/**
 * The newest matches among the records of `condition`. Walking backwards is quick for common words, the index of words
 * for rare ones, and which of them a word is the newest records tell. Of what is looked up, `condition` is asked for the
 * newest only, unless it is `filtered`; but none is left out before that, or what is hidden would crowd out what is not.
 * Where what is hidden does crowd, all is judged at once.
 *
 * The index of words of a table that grows large holds the blocks of ids, too (`blockOf`).
 */
export function newestMatches(
  id: PgColumn,
  matches: SQL,
  condition: SQL | undefined,
  { ranked, filtered = false, short = false }: Newest,
): SQL {
  const { table } = id;
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
  // The series is of one. PostgreSQL believes it to be long, or it would go through the incidents one by one.
  const many = sql`${table} cross join generate_series(1, (select 1))`;
  // What is filtered has been judged before.
  const crowdedSteps = sql`,
    crowd as materialized (select below as block, cardinality(ids) as above from near where crowded),
    behind as materialized (
      ${judged(many, sql`(select true from crowd) and ${inBlocks(sql`(select block from crowd)`, widest)}`)}),
    rest as materialized (
      ${judged(sql`${table}`, sql`(select above + (select count(*) from behind) < ${most} from crowd)`)})`;
  const ofCrowd = sql`union select ${found} from behind union select ${found} from rest`;
  // Each step has the newest matches up to some point, so that all together are those of the step that came farthest.
  // For each comparison in the recursion (`below > 0`), PostgreSQL expects a third of the rounds: a plan that it believes
  // to be dear it compiles anew each time, where it can, which takes longer than any search.
  return sql`${id} in (
    with recursive ${newest},
    first as materialized (
      select matches, last, matches * last >= ${literal(rareWindows * ranked * newestRecords)} as common
      from (select count(*) as matches, (select max(${id}) from ${table}) as last from newest) as newest),
    listed as materialized (
      select array(${lookedUp(sql`(select matches < ${most} and not common from first)`)} limit ${cut} + 1) as ids),
    looked_up as materialized (
      ${newestOf(sql`select unnest(ids) as ${found} from listed where cardinality(ids) <= ${cut}`)}),
    near (below, wide, crowded, ids) as (
      select last + 1, case when common then ${wide} else ${widest} end, false, '{}'::bigint[] from first
      where matches < ${most} and (common or (select cardinality(ids) > ${cut} from listed))
      union all
      select case when crowds then block else (block - wide + 1) << ${bits} end, least(2 * wide, ${widest}), crowds,
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
      ${filtered ? sql`` : ofCrowd}) as matching
    order by 1 desc limit ${most})`;
}

/** Written out: for a limit that it does not know, PostgreSQL keeps no plan. */
export function literal(value: number): SQL {
  return sql.raw(String(Math.trunc(value)));
}
