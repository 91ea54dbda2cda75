import { type Static, t } from "elysia";
import type { Report } from "../../core/incident/report/report.ts";
import { descriptionLength } from "../../platform/text.ts";
import { closed, id, idText, incidentText, instant, listQuery, pageOf } from "../http/schema.ts";
import { personView } from "../participant/model.ts";

const text = (description: string, minLength = 0) =>
  t.String({ minLength, maxLength: descriptionLength, description });

export const reportView = t.Object(
  {
    id,
    incident_id: id,
    author: personView,
    conditions: t.String(),
    actions: t.String(),
    needs: t.String(),
    created_at: instant,
  },
  closed,
);

export const reportPage = pageOf(reportView);

export const reportParams = t.Object({ incident_id: incidentText, report_id: idText }, closed);

const { limit, cursor } = listQuery;

export const reportQuery = t.Object(
  {
    limit,
    cursor,
    sort: t.Optional(t.String({ description: "`created_at` or `-created_at` (default)" })),
  },
  closed,
);

export const newReport = t.Object(
  {
    conditions: text("How it stands", 1),
    actions: text("What is being done"),
    needs: text("What is missing"),
  },
  closed,
);

export function viewOf({ incidentId, createdAt, ...report }: Report): Static<typeof reportView> {
  return { ...report, incident_id: incidentId, created_at: createdAt.toISOString() };
}
