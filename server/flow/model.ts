import { t } from "elysia";
import { nameLength } from "../../platform/text.ts";
import { closed } from "../http/schema.ts";
import { incidentDetail } from "../incident/model.ts";

export const retried = t.Optional(
  t.Object(
    {
      step: t.Optional(
        t.String({
          maxLength: nameLength,
          description: "May be a finished step. Default: all failed steps",
        }),
      ),
    },
    closed,
  ),
);

export const stepsView = t.Object({ steps: incidentDetail.properties.steps }, closed);
