import { and, eq } from "drizzle-orm";
import { individual, statusReport } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { withState } from "../timeline/entry.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import type { AnyReader, IncidentRef, Reader } from "../visibility/visibility.ts";
import { type Report, reportColumns } from "./report.ts";

const reports: List<"created_at"> = {
  name: "reports",
  id: statusReport.id,
  sorts: { created_at: { by: statusReport.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

/**
 * Returns a page of an incident's status reports, newest first.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput
 */
export async function listReports(
  context: Context,
  actor: Actor,
  query: ListQuery & { incidentId: number },
): Promise<{ items: Report[]; next_cursor: string | null }> {
  const { incidentId } = query;
  await seeIncident(context, actor, incidentId);
  const page = startPage(reports, query, { incidentId });
  const select = (reader: Reader | AnyReader, of: IncidentRef) =>
    context.db
      .select({ ...reportColumns, key: page.key })
      .from(statusReport)
      .innerJoin(individual, eq(individual.id, statusReport.authorId))
      .where(page.within(and(eq(statusReport.incidentId, of), maySee(reader, of))))
      .orderBy(...page.orderBy)
      .limit(page.limit);
  const rows = await page.run(context.db, actor, select);
  return page.finish(rows.map(({ key, ...row }) => ({ item: withState(row), key })));
}
