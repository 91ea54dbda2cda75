import { and, eq, inArray, isNull, max, sql } from "drizzle-orm";
import {
  event,
  incident,
  incidentPriority,
  individual,
  participant,
  participantRole,
  statusReport,
} from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { type Event, eventColumns } from "../event/list.ts";
import type { ParticipantRole } from "../participant/participant.ts";
import { mayReadIncident } from "../visibility/visibility.ts";

/** What the board shows of an incident, besides what a list of incidents has. */
export interface BoardFacts {
  /** Of the last status report. */
  reportedAt: Date | null;
  /** When the next status report is due. */
  reportDueAt: Date;
  /** The actor's. */
  roles: ParticipantRole[];
  /** What somebody did last. */
  latest: Event | undefined;
}

/** The facts of those of these incidents that the actor may read, by id. */
export async function boardFacts(
  { db }: Pick<Context, "db">,
  actor: Actor,
  ids: readonly number[],
): Promise<Map<number, BoardFacts>> {
  if (ids.length === 0) return new Map();
  const isShown = and(inArray(incident.id, [...ids]), mayReadIncident(actor));
  const lastReport = db
    .select({ at: max(statusReport.createdAt) })
    .from(statusReport)
    .where(eq(statusReport.incidentId, incident.id));
  const roles = db
    .select({ roles: sql`json_agg(${participantRole.role} order by ${participantRole.id})` })
    .from(participantRole)
    .innerJoin(participant, eq(participant.id, participantRole.participantId))
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(
      and(
        eq(participantRole.incidentId, incident.id),
        isNull(participantRole.renouncedAt),
        isNull(participant.leftAt),
        eq(individual.email, actor.user),
      ),
    );
  // Nested, because drizzle would otherwise drop the columns' table names. By time, which has an index: PostgreSQL may look
  // for a largest id among all events.
  const latest = sql`(select e.id from ${event} as e where e.incident_id = ${sql`${incident.id}`}
    and e.actor not in ('system', 'worker') order by e.at desc, e.id desc limit 1)`;
  const [rows, events] = await Promise.all([
    db
      .select({
        id: incident.id,
        reportedAt: sql<Date | null>`(${lastReport})`.mapWith(statusReport.createdAt),
        since: incident.reportedAt,
        hours: incidentPriority.reminderHours,
        roles: sql<ParticipantRole[] | null>`(${roles})`,
      })
      .from(incident)
      .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
      .where(isShown),
    db.select(eventColumns).from(incident).innerJoin(event, eq(event.id, latest)).where(isShown),
  ]);
  const byIncident = new Map(events.map((one) => [one.incidentId, one]));
  return new Map(
    rows.map(({ id, reportedAt, since, hours, roles }) => [
      id,
      {
        reportedAt,
        reportDueAt: new Date((reportedAt ?? since).getTime() + hours * 3_600_000),
        roles: roles ?? [],
        latest: byIncident.get(id),
      },
    ]),
  );
}
