import { t } from "elysia";
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

export const noReasons = { incident_type_ids: [], incident_priority_ids: [], term_ids: [] };
