import { and, eq } from "drizzle-orm";
import { individual, statusReport } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { withState } from "../timeline/entry.ts";
import { mayReadOf } from "../visibility/visibility.ts";
import { noSuchReport, type Report, reportColumns } from "./report.ts";

/** @throws NotFound also for an incident that the actor may not read */
export async function getReport(
  { db }: Context,
  actor: Actor,
  { incidentId, reportId }: { incidentId: number; reportId: number },
): Promise<Report> {
  const [found] = await db
    .select(reportColumns)
    .from(statusReport)
    .innerJoin(individual, eq(individual.id, statusReport.authorId))
    .where(
      and(
        eq(statusReport.id, reportId),
        eq(statusReport.incidentId, incidentId),
        mayReadOf(actor, statusReport.incidentId),
      ),
    );
  if (!found) throw noSuchReport();
  return withState(found);
}
