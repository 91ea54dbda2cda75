import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { RecommendationReason } from "../../drizzle/schema/recommendation.ts";
import type { Context } from "../context.ts";
import type { IncidentFacts } from "../plugin/facts.ts";

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

/**
 * The records that are linked to the incident's type, its priority or terms of it, those with most reasons first, then
 * the oldest; at most `limit` of those that `where` takes, a condition on `owner`.
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
  const linked = (of: (owner: SQL) => SQL) =>
    sql.join(
      kinds.map(
        ([kind, { owner, to }, ids]) => sql`
          select ${owner} as owner, ${kind}::text as kind, ${to} as id from ${owner.table}
          where ${to} = any(${sql.param(ids)}::bigint[]) and ${of(sql`${owner}`)}`,
      ),
      sql` union all `,
    );
  // What `where` takes may be few of many that are linked, or many of few: said of each kind of link, PostgreSQL begins
  // with the fewer. And why the best are proposed is read of those alone.
  const rows = await db.execute<{
    owner: string;
    kind: "incident_type" | "incident_priority" | "term";
    id: string;
  }>(sql`
    with best as materialized (
      select owner, count(*) as reasons from (${linked(where)}) as link
      group by owner order by reasons desc, owner limit ${limit}
    )
    select link.* from best cross join lateral (${linked((owner) => sql`${owner} = best.owner`)}) as link
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
