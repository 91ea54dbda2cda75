import { and, asc, desc, eq, gt, inArray, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import {
  costFormula,
  costFormulaRole,
  incident,
  incidentCost,
  participant,
  participantRole,
} from "../../../drizzle/schema/index.ts";
import { SvcError } from "../../../platform/errors.ts";

/** The version of the formula in force: the highest. @throws SvcError if there is none, or it cannot be computed */
export async function formulaInForce(db: Pick<Database, "select">): Promise<number> {
  const { version, dailyHours, reviewHours, reviewHoursPerParticipant } = costFormula;
  const [newest] = await db
    .select({ version, dailyHours, reviewHours, reviewHoursPerParticipant })
    .from(costFormula)
    .orderBy(desc(version))
    .limit(1);
  if (!newest) throw new SvcError("configuration", "There is no cost formula: svc database populate");
  const { formulaVersion, multiplier } = costFormulaRole;
  const roles = await db
    .select({ multiplier })
    .from(costFormulaRole)
    .where(eq(formulaVersion, newest.version));
  // PostgreSQL sorts NaN above all numbers, so no constraint of ours refuses it.
  if (![...Object.values(newest), ...roles.map((role) => role.multiplier)].every(Number.isFinite)) {
    const what = `Cost formula ${newest.version} has a number that is NaN or infinite`;
    throw new SvcError("configuration", `${what}: add a version without it`);
  }
  return newest.version;
}

/**
 * Returns the incidents whose cost must be computed, in order of their ids: Active ones, and those that have changed
 * since.
 */
export async function costDue(
  db: Pick<Database, "select">,
  afterId: number,
  limit: number,
): Promise<number[]> {
  const rows = await db
    .select({ id: incident.id })
    .from(incident)
    // Written like the partial index.
    .where(and(gt(incident.id, afterId), sql`(status = 'Active' or costed_basis <> cost_basis)`))
    .orderBy(asc(incident.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** Locks the incidents that nobody else has locked. It does not wait for the others, so that nobody waits for us. */
export async function lockForCost(
  tx: Transaction,
  ids: readonly number[],
): Promise<{ ids: number[]; locked: number[] }> {
  const among = inArray(incident.id, [...ids]);
  const held = await tx
    .select({ id: incident.id })
    .from(incident)
    .where(among)
    .orderBy(asc(incident.id))
    .for("no key update", { skipLocked: true });
  const ours = new Set(held.map(({ id }) => id));
  if (ours.size === ids.length) return { ids: [...ours], locked: [] };
  const there = await tx.select({ id: incident.id }).from(incident).where(among);
  return { ids: [...ours], locked: there.map(({ id }) => id).filter((id) => !ours.has(id)) };
}

/**
 * Computes the cost of incidents that the transaction has locked, like `costOf`, and stores each one that changed. It
 * is a separate statement after the locking one, so that it sees what was committed up to then.
 *
 * @returns how many changed
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
    -- Among a person's roles with the same multiplier, the first one counts: each later one starts when those before it
    -- end. So on one level of multipliers, a person is in one role at a time.
    apart as (
      select id, incident_id, individual_id, multiplier, ends,
        greatest(starts, max(ends) over (partition by incident_id, individual_id, multiplier
          order by starts, ends desc, id rows between unbounded preceding and 1 preceding)) as starts
      from ended where starts < ends
    ),
    span as (
      select *, dense_rank() over (partition by incident_id, individual_id order by multiplier desc) as level
      from apart where starts < ends
    ),
    ranked as (select *, max(level) over (partition by incident_id, individual_id) as lowest from span),
    -- The moments at which roles begin and end, for their level and each lower one: how many higher roles are open, and
    -- how long it is until the next moment. A single ordered pass, because one person may assume and renounce all day.
    seen as (
      select r.id, r.incident_id, r.individual_id, r.multiplier, r.level = seen_from as own, seen_from, at, step,
        sum(step) filter (where r.level < seen_from) over by_time as above,
        lead(at) over by_time - at as until_next
      from ranked r cross join lateral (values (r.starts, 1), (r.ends, -1)) as moment (at, step)
        cross join lateral generate_series(r.level, r.lowest) as seen_from
      window by_time as (partition by r.incident_id, r.individual_id, seen_from order by at, r.id, step)
    ),
    -- How long, up to each moment, no higher role was open.
    clear as (
      select *, sum(extract(epoch from until_next)) filter (where coalesce(above, 0) = 0) over (
        partition by incident_id, individual_id, seen_from order by at, id, step
        rows between unbounded preceding and 1 preceding) as seconds_before
      from seen
    ),
    -- Integer division only, with remainders for rounding up: a quotient may not be a finite decimal.
    lasted as (
      select id, incident_id, multiplier, -sum(step * coalesce(seconds_before, 0)) as seconds
      from clear where own group by id, incident_id, multiplier
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
