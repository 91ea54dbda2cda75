import { and, asc, count, desc, eq, gt, inArray, isNull, lte, max, or, type SQL, sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { incident, incidentPriority, participant, statusReport } from "../../../drizzle/schema/index.ts";
import { commanderNow } from "../incident/holder.ts";
import type { Window } from "./window.ts";

/** An incident in a summary. */
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

/** The incidents of a summary: Active ones, and those that became Stable or Closed in its window. */
function isListed({ since, until }: Window): SQL | undefined {
  const within = (column: typeof incident.stableAt | typeof incident.closedAt) =>
    and(gt(column, since), lte(column, until));
  return or(eq(incident.status, "Active"), within(incident.stableAt), within(incident.closedAt));
}

/** Returns the first `limit` listed incidents that match `which`: active and urgent ones first. */
export async function readListed(
  db: Pick<Database, "select">,
  window: Window,
  which: SQL | undefined,
  limit: number,
): Promise<Listed[]> {
  const lastReport = db
    .select({ at: max(statusReport.createdAt) })
    .from(statusReport)
    .where(eq(statusReport.incidentId, incident.id));
  return db
    .select({
      id: incident.id,
      name: incident.name,
      title: incident.title,
      status: incident.status,
      priority: incidentPriority.name,
      reportedAt: incident.reportedAt,
      commander: sql<string | null>`${commanderNow} ->> 'name'`,
      lastReportAt: sql<Date | null>`(${lastReport})`.mapWith(statusReport.createdAt),
    })
    .from(incident)
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(and(isListed(window), which))
    .orderBy(
      sql`${incident.status} <> 'Active'`,
      desc(incidentPriority.rank),
      desc(incident.reportedAt),
      asc(incident.id),
    )
    .limit(limit);
}

/** Counts the listed incidents that match `which`: active ones, and others. */
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

/** The ids after `last` of people who participate in a listed incident. */
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

/** In which of the listed incidents these people currently participate. */
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
