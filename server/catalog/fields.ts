import { type Static, t } from "elysia";
import type { Reasons } from "../../core/catalog/reason.ts";
import { descriptionLength, nameLength } from "../../platform/text.ts";
import { id } from "../http/schema.ts";

// Fields shared by several resources.

export const name = t.String({ minLength: 1, maxLength: nameLength });
export const description = t.String({ maxLength: descriptionLength });
export const email = t.String({
  minLength: 1,
  maxLength: nameLength,
  description: "In any spelling; the canonical one is stored",
});
export const ids = t.Array(id, { maxItems: 200 });

/** As returned: records that came back from their source may exceed the limit for writes. */
export const shownIds = t.Array(id);

/** Plugins propose a record for incidents of these types and priorities, or with these terms. */
export const reasons = { incident_type_ids: ids, incident_priority_ids: ids, term_ids: ids };
export const shownReasons = {
  incident_type_ids: shownIds,
  incident_priority_ids: shownIds,
  term_ids: shownIds,
};

type ReasonsBody = { [K in keyof typeof reasons]: Static<typeof ids> };

export const noReasons: ReasonsBody = { incident_type_ids: [], incident_priority_ids: [], term_ids: [] };

/** Omitted fields stay undefined. */
export function reasonsOf(body: ReasonsBody): Reasons;
export function reasonsOf(body: Partial<ReasonsBody>): Partial<Reasons>;
export function reasonsOf(body: Partial<ReasonsBody>): Partial<Reasons> {
  return {
    incidentTypeIds: body.incident_type_ids,
    incidentPriorityIds: body.incident_priority_ids,
    termIds: body.term_ids,
  };
}

export function viewOfReasons(reasons: Reasons): ReasonsBody {
  return {
    incident_type_ids: reasons.incidentTypeIds,
    incident_priority_ids: reasons.incidentPriorityIds,
    term_ids: reasons.termIds,
  };
}
