import { and, gte, lt, type SQL, sql } from "drizzle-orm";
import {
  incident,
  incidentPriority,
  incidentService,
  incidentType,
  participantRole,
  service,
  statusReport,
  task,
} from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import { isStorable } from "../../../platform/instant.ts";
import type { Actor, Context } from "../../context.ts";
import { mayReadIncident } from "../visibility/visibility.ts";
import {
  type Figures,
  type Grouping,
  mostYears,
  noService,
  type Stats,
  type TimeFigure,
  timeFigures,
  usualWeeks,
} from "./figures.ts";

const day = 86_400_000;
const week = 7 * day;
/** 1970 began on a Thursday. */
const firstMonday = 4 * day;

export interface StatsQuery {
  /** By default, the Monday that makes it twelve weeks. */
  since?: Date;
  /** Not included. By default now. */
  until?: Date;
  by?: Grouping;
}

/**
 * Returns the numbers of the incidents that were reported in a range of time and that the actor may read. docs/numbers.md has
 * the definitions.
 *
 * @throws InvalidInput for an empty range, or one of more than five years
 */
export async function readStats(
  { db, clock }: Pick<Context, "db" | "clock">,
  actor: Actor,
  { by = "week", ...query }: StatsQuery,
): Promise<Stats> {
  const until = query.until ?? clock.now();
  const since = query.since ?? new Date(mondayOf(until.getTime() - 1) - (usualWeeks - 1) * week);
  if (!isStorable(until)) throw new InvalidInput("until", "The range must end before the year 10000");
  if (since >= until) throw new InvalidInput("until", "The range must end after it begins");
  if (until.getTime() - since.getTime() > mostYears * 366 * day)
    throw new InvalidInput("since", `The range must not be longer than ${mostYears} years`);
  const rows = await db.execute<{ part: Part; id: number | null; name: string; figures: Figures }>(
    statement(
      and(gte(incident.reportedAt, since), lt(incident.reportedAt, until), mayReadIncident(actor))!,
      by,
    ),
  );
  const of = (part: Part) => rows.filter((row) => row.part === part);
  const counts = new Map(of("week").map(({ name, figures }) => [name, figures.incidents]));
  const weeks = weeksOf(since, until).map((one) => ({ week: one, incidents: counts.get(one) ?? 0 }));
  const groups = of("group").map(({ id, name, figures }) => ({ id, name, ...rounded(figures) }));
  return {
    since,
    until,
    by,
    restricted: actor.admin ? "all" : "own",
    total: rounded(of("total")[0]!.figures),
    weeks,
    groups:
      by === "week"
        ? weeks.map(
            ({ week: name }) => groups.find((one) => one.name === name) ?? { id: null, name, ...nothing() },
          )
        : groups,
  };
}

type Part = "total" | "week" | "group";

const mondayOf = (time: number) => Math.floor((time - firstMonday) / week) * week + firstMonday;

/** The Mondays of the weeks, also of those without an incident. */
function weeksOf(since: Date, until: Date): string[] {
  const weeks: string[] = [];
  for (let at = mondayOf(since.getTime()); at < until.getTime(); at += week)
    weeks.push(new Date(at).toISOString().slice(0, 10));
  return weeks;
}

const nothing = (): Figures => {
  const none = { incidents: 0, p50: null, p90: null };
  return {
    incidents: 0,
    commander: none,
    report: none,
    stable: none,
    close: none,
    impact: none,
    cost: 0,
    tasks: 0,
  };
};

function rounded(figures: Figures): Figures {
  const seconds = (value: number | null) => value && Math.round(value);
  const times = timeFigures.map((name) => {
    const { incidents, p50, p90 } = figures[name];
    return [name, { incidents, p50: seconds(p50), p90: seconds(p90) }];
  });
  return { ...figures, ...Object.fromEntries(times) };
}

/** A single statement, which reads each incident once: for all of them, for each week, and for each group. */
function statement(isCounted: SQL, by: Grouping): SQL {
  // PostgreSQL may then start from the incidents or from the other table, whichever has fewer rows.
  return sql`
    with counted as materialized (
      select ${incident.id} as id, ${incident.reportedAt} as reported_at, ${incident.status} as status,
        ${incident.stableAt} as stable_at, ${incident.closedAt} as closed_at, ${incident.cost} as cost,
        ${incident.impactEndedAt} - ${incident.impactStartedAt} as impact,
        ${incident.incidentTypeId} as type_id, ${incident.incidentPriorityId} as priority_id,
        date_trunc('week', ${incident.reportedAt} at time zone 'UTC')::date as week
      from ${incident} where ${isCounted}),
    commanded as (
      select counted.id, min(${participantRole.assumedAt}) as at from counted
      join ${participantRole} on ${participantRole.incidentId} = counted.id
      where ${participantRole.role} = 'commander' and ${participantRole.assumedAt} >= reported_at group by counted.id),
    informed as (
      select counted.id, min(${statusReport.createdAt}) as at from counted
      join ${statusReport} on ${statusReport.incidentId} = counted.id
      where ${statusReport.createdAt} >= reported_at group by counted.id),
    followed as (
      select counted.id, count(*) as tasks from counted join ${task} on ${task.incidentId} = counted.id
      where counted.status = 'Closed' and ${task.status} = 'Open' and ${task.deletedAt} is null group by counted.id),
    facts as materialized (
      select counted.id, week, type_id, priority_id, cost, tasks,
        ${secondsOf(sql`commanded.at - reported_at`)} as commander,
        ${secondsOf(sql`informed.at - reported_at`)} as report,
        ${secondsOf(sql`stable_at - reported_at`)} as stable,
        ${secondsOf(sql`closed_at - reported_at`)} as close,
        ${secondsOf(sql`impact`)} as impact
      from counted left join commanded using (id) left join informed using (id) left join followed using (id))
    select 'total' as part, null::float8 as id, '' as name, ${figures} as figures, 0 as position from facts
    union all
    select 'week', null, ${weekName}, json_build_object('incidents', count(*)), 0 from facts group by week
    union all
    ${grouped[by]}
    order by position, name, id`;
}

const weekName = sql`to_char(week, 'YYYY-MM-DD')`;

/** Unlike `extract`, it does not calculate with `numeric`, which takes several times as long. */
const secondsOf = (interval: SQL) => sql`date_part('epoch', ${interval})`;

const timeFigure = (name: TimeFigure) => {
  const column = sql.identifier(name);
  const percentile = sql`(percentile_cont(array[0.5, 0.9]) within group (order by ${column}))`;
  return sql`${sql.raw(`'${name}'`)}, json_build_object(
    'incidents', count(${column}), 'p50', ${percentile}[1], 'p90', ${percentile}[2])`;
};

const figures = sql`json_build_object('incidents', count(*), ${sql.join(timeFigures.map(timeFigure), sql`, `)},
  'cost', coalesce(sum(cost), 0), 'tasks', coalesce(sum(tasks), 0))`;

/** Weeks in order of time, priorities in order of rank, and others with most incidents first. */
const grouped: Readonly<Record<Grouping, SQL>> = {
  week: sql`select 'group', null, ${weekName}, ${figures}, 0 from facts group by week`,
  type: sql`select 'group', ${incidentType.id}, ${incidentType.name}, ${figures}, -count(*)
    from facts join ${incidentType} on ${incidentType.id} = type_id group by ${incidentType.id}`,
  priority: sql`select 'group', ${incidentPriority.id}, ${incidentPriority.name}, ${figures}, ${incidentPriority.rank}
    from facts join ${incidentPriority} on ${incidentPriority.id} = priority_id group by ${incidentPriority.id}`,
  service: sql`select 'group', ${service.id}, coalesce(${service.name}, ${sql.raw(`'${noService}'`)}), ${figures}, -count(*)
    from facts left join ${incidentService} on ${incidentService.incidentId} = facts.id
    left join ${service} on ${service.id} = ${incidentService.serviceId} group by ${service.id}`,
};
