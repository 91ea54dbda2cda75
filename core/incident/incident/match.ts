import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { RecommendationReason } from "../../../drizzle/schema/recommendation.ts";
import type { Context } from "../../context.ts";
import type { IncidentFacts } from "../../plugin/facts.ts";

/** A table that links records to types, priorities or terms: the columns of the record and of what it is linked to. */
interface Link {
  owner: PgColumn;
  to: PgColumn;
}

export interface Links {
  type: Link;
  priority: Link;
  term: Link;
}

export interface Match {
  id: number;
  reasons: RecommendationReason[];
}

/** The maximum number of reasons in a plugin's answer (core/plugin/methods.ts). */
const mostReasons = 50;

/**
 * The number of links to compare, shared evenly by what the incident has. A link with more records does not distinguish
 * them.
 */
const mostLinks = 20_000;

/**
 * Returns the records that are linked to the incident's type, priority or terms, those with the most reasons first,
 * then the oldest. Returns at most `limit` records, of those that `nextOf` finds: a query of the first id from this one
 * on. The oldest records of each link are compared: a record is skipped if each of its links has thousands of older
 * ones. Records that `nextOf` does not find do not count, since there may be more of them, and all of them older.
 */
export async function matchIncident(
  { db }: Context,
  { type, priority, terms }: IncidentFacts,
  links: Links,
  { limit, nextOf }: { limit: number; nextOf?: (id: SQL) => SQL },
): Promise<Match[]> {
  const kinds = [
    ["incident_type", links.type, [type.id]],
    ["incident_priority", links.priority, [priority.id]],
    ["term", links.term, terms.map(({ id }) => id)],
  ] as const;
  const ofEach = Math.max(1, Math.floor(mostLinks / (2 + terms.length)));
  const oldest = kinds.map(([, { owner, to }, ids]) => {
    const linked = (from: SQL, count: number) => sql`
      select ${owner} as owner from ${owner.table} where ${to} = wanted.id and ${owner} >= ${from}
      order by ${owner} limit ${count}`;
    // The records of `nextOf` may be a few of many linked ones or the reverse, so this leaps through the indexes of both.
    // A join would compare each with each if PostgreSQL expects few.
    const found = nextOf
      ? sql`with recursive leap (owner, next) as (
          select 0::bigint, 1::bigint
          union all
          select linked.owner, allowed.id from leap
          cross join lateral (${linked(sql`greatest(leap.owner + 1, leap.next)`, 1)}) as linked
          cross join lateral (${nextOf(sql`linked.owner`)}) as allowed)
        select owner from leap where owner = next limit ${ofEach}`
      : linked(sql`1`, ofEach);
    return sql`
      select link.owner from unnest(${sql.param(ids)}::bigint[]) as wanted (id) cross join lateral (${found}) as link`;
  });
  // `offset 0`: otherwise, if PostgreSQL expects few links, it goes through all those of the incident for each record.
  const linkedTo = (record: SQL) =>
    sql.join(
      kinds.map(
        ([kind, { owner, to }, ids]) => sql`
          select * from (select ${owner} as owner, ${kind}::text as kind, ${to} as id from ${owner.table}
            where ${owner} = ${record} offset 0) as link
          where id = any(${sql.param(ids)}::bigint[])`,
      ),
      sql` union all `,
    );
  // The reasons are read only for the best.
  const rows = await db.execute<{
    owner: string;
    kind: "incident_type" | "incident_priority" | "term";
    id: string;
  }>(sql`
    with found as materialized (${sql.join(oldest, sql` union `)}),
    best as materialized (
      select found.owner, count(*) as reasons from found cross join lateral (${linkedTo(sql`found.owner`)}) as link
      group by found.owner order by reasons desc, owner limit ${limit}
    )
    select link.* from best cross join lateral (${linkedTo(sql`best.owner`)}) as link
    order by best.reasons desc, owner, array_position(array['incident_type', 'incident_priority'], kind), id`);
  const names = {
    incident_type: new Map([[type.id, type.name]]),
    incident_priority: new Map([[priority.id, priority.name]]),
    term: new Map(terms.map(({ id, text }) => [id, text])),
  };
  const matches = new Map<number, Match>();
  for (const { owner, kind, id: to } of rows) {
    const id = Number(to);
    const name = names[kind].get(id);
    const match = matches.get(Number(owner)) ?? { id: Number(owner), reasons: [] };
    matches.set(match.id, match);
    if (name !== undefined && match.reasons.length < mostReasons) match.reasons.push({ kind, id, name });
  }
  return [...matches.values()];
}
