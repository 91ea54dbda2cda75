import { and, asc, count, desc, eq, gt, inArray, isNull, lte, max, or, type SQL, sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { endlessReason, isEndlessColumn } from "../../../drizzle/endless.ts";
import {
  incident,
  incidentPriority,
  individual,
  participant,
  participantRole,
  statusReport,
} from "../../../drizzle/schema/index.ts";
import type { Fault } from "../../schedule/runs.ts";
import type { Window } from "./window.ts";

/** An incident as a summary tells of it. */
export interface Listed {
  id: number;
  name: string;
  title: string;
  status: "Active" | "Stable" | "Closed";
  priority: string;
  reportedAt: Date;
  commander: string | null;
  lastReportAt: Date | null;
}

/** What a summary tells of: what is Active, and what became Stable or Closed in its window. */
function isListed({ since, until }: Window): SQL | undefined {
  const within = (column: typeof incident.stableAt | typeof incident.closedAt) =>
    and(gt(column, since), lte(column, until));
  return or(eq(incident.status, "Active"), within(incident.stableAt), within(incident.closedAt));
}

/** The first `limit` of the incidents that are listed and `which`: what goes on and is urgent comes first. */
export async function readListed(
  db: Pick<Database, "select">,
  window: Window,
  which: SQL | undefined,
  limit: number,
): Promise<Listed[]> {
  const { role, renouncedAt } = participantRole;
  const commander = db
    .select({ name: individual.name })
    .from(participantRole)
    .innerJoin(participant, eq(participant.id, participantRole.participantId))
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(and(eq(participantRole.incidentId, incident.id), eq(role, "commander"), isNull(renouncedAt)));
  const lastReport = db
    .select({ at: max(statusReport.createdAt) })
    .from(statusReport)
    .where(eq(statusReport.incidentId, incident.id));
  return db
    .select({
      ...{ id: incident.id, name: incident.name, title: incident.title, status: incident.status },
      ...{ priority: incidentPriority.name, reportedAt: incident.reportedAt },
      commander: sql<string | null>`(${commander})`,
      lastReportAt: sql<Date | null>`(${lastReport})`.mapWith(statusReport.createdAt),
    })
    .from(incident)
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(and(isListed(window), which))
    .orderBy(
      sql`${incident.status} <> 'Active'`,
      ...[desc(incidentPriority.rank), desc(incident.reportedAt), asc(incident.id)],
    )
    .limit(limit);
}

/** How many incidents are listed and `which`: those that go on, and the others. */
export async function countListed(
  db: Pick<Database, "select">,
  window: Window,
  which: SQL | undefined,
): Promise<{ active: number; ended: number }> {
  const rows = await db
    .select({ active: sql<boolean>`${incident.status} = 'Active'`, n: count() })
    .from(incident)
    .where(and(isListed(window), which))
    .groupBy(sql`1`);
  const of = (active: boolean) => rows.find((row) => row.active === active)?.n ?? 0;
  return { active: of(true), ended: of(false) };
}

/** Ids behind `last` of people who take part in an incident that is listed. */
export async function audience(
  db: Pick<Database, "selectDistinct">,
  window: Window,
  last: number,
  limit: number,
): Promise<number[]> {
  const { individualId } = participant;
  const rows = await db
    .selectDistinct({ id: individualId })
    .from(participant)
    .innerJoin(incident, eq(incident.id, participant.incidentId))
    .where(and(isListed(window), isNull(participant.leftAt), gt(individualId, last)))
    .orderBy(asc(individualId))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** In which of the incidents that are listed these people take part now. */
export async function participations(
  db: Pick<Database, "select">,
  window: Window,
  people: readonly number[],
) {
  return db
    .select({
      individualId: participant.individualId,
      incident: { id: incident.id, status: incident.status, visibility: incident.visibility },
    })
    .from(participant)
    .innerJoin(incident, eq(incident.id, participant.incidentId))
    .where(and(isListed(window), isNull(participant.leftAt), inArray(participant.individualId, [...people])))
    .orderBy(sql`${incident.status} <> 'Active'`, desc(incident.reportedAt), asc(incident.id));
}

/** Incidents of which it cannot be told whether they belong into a summary, or since when they have been Active. */
export async function endlessIncidents(db: Pick<Database, "select">): Promise<Fault[]> {
  const { status, reportedAt, stableAt, closedAt } = incident;
  const rows = await db
    .select({ item: incident.name })
    .from(incident)
    .where(
      or(
        and(eq(status, "Active"), isEndlessColumn(reportedAt)),
        isEndlessColumn(stableAt),
        isEndlessColumn(closedAt),
      ),
    )
    .orderBy(asc(incident.id));
  return rows.map(({ item }) => ({ item, reason: endlessReason }));
}
