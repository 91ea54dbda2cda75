import { and, asc, desc, gt, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import {
  costFormula,
  costFormulaRole,
  incident,
  incidentCost,
  participant,
  participantRole,
} from "../../drizzle/schema/index.ts";
import { SvcError } from "../errors.ts";

/** The version of the formula in force: the highest. @throws SvcError when there is none */
export async function formulaInForce(tx: Transaction): Promise<number> {
  const [newest] = await tx
    .select({ version: costFormula.version })
    .from(costFormula)
    .orderBy(desc(costFormula.version))
    .limit(1);
  if (!newest) throw new SvcError("configuration", "There is no cost formula: svc database populate");
  return newest.version;
}

/**
 * Takes hold of incidents whose cost is to be computed, in the order of their ids: those that are Active, and those that
 * have changed since. One that somebody is just changing is left for the next time, instead of waiting for it.
 */
export async function lockCostDue(tx: Transaction, afterId: number, limit: number): Promise<number[]> {
  const rows = await tx
    .select({ id: incident.id })
    .from(incident)
    // As the index has it.
    .where(and(gt(incident.id, afterId), sql`(status = 'Active' or costed_basis <> cost_basis)`))
    .orderBy(asc(incident.id))
    .limit(limit)
    .for("no key update", { skipLocked: true });
  return rows.map(({ id }) => id);
}

/**
 * Computes the cost of incidents that the transaction holds, as `costOf` does, and keeps each that is another than
 * before. It is a statement of its own behind the locking one, so that it sees what was committed up to then.
 *
 * @returns how many were another
 */
export async function computeCosts(
  tx: Transaction,
  { ids, formula, now }: { ids: readonly number[]; formula: number; now: Date },
): Promise<number> {
  const [row] = await tx.execute<{ changed: number }>(sql`
    with formula as (
      select version, ceil(yearly_cost::numeric / yearly_hours)::int as rate, daily_hours, review_hours,
        review_hours_per_participant
      from ${costFormula} where version = ${formula}
    ),
    subject as (
      select id, stable_at, cost, cost_basis, costed_basis from ${incident}
      where id = any(${`{${ids.join(",")}}`}::bigint[])
    ),
    ended as (
      select r.id, r.incident_id, p.individual_id, coalesce(m.multiplier, 0) as multiplier, r.assumed_at as starts,
        least(coalesce(r.renounced_at, s.stable_at, ${now.toISOString()}::timestamptz), s.stable_at) as ends
      from subject s
      join ${participantRole} r on r.incident_id = s.id
      join ${participant} p on p.id = r.participant_id
      left join ${costFormulaRole} m on m.formula_version = ${formula} and m.role = r.role
    ),
    span as materialized (select * from ended where starts < ends),
    -- What is left of a role without those of the same person that count before it. Only what it meets is gathered: one
    -- person may assume and renounce all day.
    left_over as (
      select a.id, a.incident_id, a.multiplier,
        tstzmultirange(tstzrange(a.starts, a.ends))
          - coalesce(range_agg(tstzrange(b.starts, b.ends)) filter (where b.id is not null), '{}') as times
      from span a
      left join span b on b.incident_id = a.incident_id and b.individual_id = a.individual_id
        and b.starts < a.ends and a.starts < b.ends
        and (-b.multiplier, b.starts, a.ends, b.id) < (-a.multiplier, a.starts, b.ends, a.id)
      group by a.id, a.incident_id, a.multiplier, a.starts, a.ends
    ),
    -- Whole divisions only, whose remainders tell whether to round up: a quotient may have no end.
    lasted as (
      select id, incident_id, multiplier, sum(extract(epoch from upper(time) - lower(time))) as seconds
      from left_over, unnest(times) as time
      group by id, incident_id, multiplier
    ),
    days as (
      select *, div(seconds, 86400) * (select daily_hours from formula) * 3600 + mod(seconds, 86400) as slept
      from lasted
    ),
    weighed as (
      select incident_id, sum(floor(multiplier * case
        when seconds > 86400 then (div(slept, 3600) + (mod(slept, 3600) > 0)::int) * 3600 else seconds end)) as seconds
      from days group by incident_id
    ),
    attended as (
      select p.incident_id, count(distinct p.individual_id) as people
      from subject s join ${participant} p on p.incident_id = s.id group by p.incident_id
    ),
    summed as (
      select s.*, f.version, f.rate, coalesce(w.seconds, 0) as seconds,
        case when s.stable_at is null then 0
          else f.review_hours + f.review_hours_per_participant * coalesce(a.people, 0) end as review
      from subject s cross join formula f
      left join weighed w on w.incident_id = s.id
      left join attended a on a.incident_id = s.id
    ),
    priced as (select *, (seconds + review * 3600) * rate as total from summed),
    computed as (select *, div(total, 3600) + (mod(total, 3600) > 0)::int as computed from priced),
    kept as (
      insert into ${incidentCost} (incident_id, computed_at, cost, formula_version, seconds, review_hours, rate)
      select id, ${now.toISOString()}::timestamptz, computed, version, seconds, review, rate
      from computed where computed <> cost
      returning 1
    ),
    noted as (
      update ${incident} set cost = c.computed, costed_basis = c.cost_basis
      from computed c
      where ${incident}.id = c.id and (c.computed <> c.cost or c.cost_basis <> c.costed_basis)
    )
    select count(*)::int as changed from kept`);
  return row?.changed ?? 0;
}
