import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { RecommendationReason } from "../../../drizzle/schema/recommendation.ts";
import type { Context } from "../../context.ts";
import type { IncidentFacts } from "../../plugin/facts.ts";

/** A table that links records to types, priorities or terms: its column of the record, and that of what it is linked to. */
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

/** What a plugin may answer of reasons (core/plugin/methods.ts). */
const mostReasons = 50;

/** Links that are compared, shared evenly by what the incident has: a link of more records tells none of them apart. */
const mostLinks = 20_000;

/**
 * The records that are linked to the incident's type, its priority or terms of it, those with most reasons first, then
 * the oldest; at most `limit` of those that `where` takes, a condition on `owner`. However many it takes, the oldest of each
 * link are compared: a record is passed over when each of its links has thousands that are older. Those that it does not
 * take are no part of these: there may be more of them than of the others, and all of them older.
 */
export async function matchIncident(
  { db }: Context,
  { type, priority, terms }: IncidentFacts,
  links: Links,
  { limit, where = () => sql`true` }: { limit: number; where?: (owner: SQL) => SQL },
): Promise<Match[]> {
  const kinds = [
    ["incident_type", links.type, [type.id]],
    ["incident_priority", links.priority, [priority.id]],
    ["term", links.term, terms.map(({ id }) => id)],
  ] as const;
  const ofEach = Math.max(1, Math.floor(mostLinks / (2 + terms.length)));
  const oldest = kinds.map(
    ([, { owner, to }, ids]) => sql`
      select link.owner from unnest(${sql.param(ids)}::bigint[]) as wanted (id) cross join lateral (
        select ${owner} as owner from ${owner.table} where ${to} = wanted.id and ${where(sql`${owner}`)}
        order by ${owner} limit ${ofEach}) as link`,
  );
  const linkedTo = (record: SQL) =>
    sql.join(
      kinds.map(
        ([kind, { owner, to }, ids]) => sql`
          select ${owner} as owner, ${kind}::text as kind, ${to} as id from ${owner.table}
          where ${to} = any(${sql.param(ids)}::bigint[]) and ${owner} = ${record}`,
      ),
      sql` union all `,
    );
  // What `where` takes may be few of many that are linked, or many of few: said of each link, PostgreSQL begins with the
  // fewer. And why the best are proposed is read of those alone.
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
