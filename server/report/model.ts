import { t } from "elysia";
import { descriptionLength } from "../../platform/text.ts";
import { entryOf } from "../event/model.ts";
import { closed, id, idText, incidentText, instant, listQuery } from "../http/schema.ts";
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
    ...entryOf,
  },
  closed,
);

export const reportParams = t.Object({ incident_id: incidentText, report_id: idText }, closed);

export const reportQuery = listQuery("`created_at` or `-created_at` (default)");

export const newReport = t.Object(
  {
    conditions: text("How it stands", 1),
    actions: text("What is being done"),
    needs: text("What is missing"),
  },
  closed,
);
