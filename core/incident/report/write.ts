import { statusReport } from "../../../drizzle/schema/index.ts";
import { descriptionLength, parseProse, parseText } from "../../../platform/text.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { lockIncident } from "../incident/lock.ts";
import { announceReport } from "../message/announce.ts";
import { recordEvent } from "../timeline/event.ts";
import { getReport } from "./get.ts";
import type { Report } from "./report.ts";

/**
 * Writes a status report of an incident. Anyone who may read it may do so.
 *
 * @throws InvalidInput
 * @throws NotFound when the actor may not read the incident
 */
export async function writeReport(
  context: AppContext,
  actor: Actor,
  wanted: { incidentId: number; conditions: string; actions: string; needs: string },
): Promise<Report> {
  const { db, clock } = context;
  const { incidentId } = wanted;
  const texts = {
    conditions: parseProse("conditions", wanted.conditions),
    actions: parseText("actions", wanted.actions, descriptionLength),
    needs: parseText("needs", wanted.needs, descriptionLength),
  };
  return db.transaction(async (tx) => {
    const incident = await lockIncident(tx, actor, incidentId);
    const at = clock.now();
    const authorId = await individualOf(tx, actor, at);
    const [written] = await tx
      .insert(statusReport)
      .values({ incidentId, authorId, ...texts, createdAt: at })
      .returning({ id: statusReport.id });
    const reportId = written!.id;
    await recordEvent(tx, {
      incidentId,
      at,
      actor: actor.user,
      kind: "report.written",
      description: "Status report written",
      data: { report_id: reportId },
    });
    const report = await getReport({ ...context, db: tx }, actor, { incidentId, reportId });
    await announceReport(tx, context, incident, report);
    return report;
  });
}
