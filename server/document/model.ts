import { type Static, t } from "elysia";
import type { DocumentFields } from "../../core/incident/document/document.ts";
import { fromApi } from "../../platform/names.ts";
import { nameLength, urlLength } from "../../platform/text.ts";
import { description, name, reasons, shownReasons } from "../catalog/fields.ts";
import { closed, id, idText, instant, listQuery, nullable, q, readOnly, version } from "../http/schema.ts";

const weblink = nullable(t.String({ maxLength: urlLength, description: "An http or https URL" }));
const resourceType = t.String({
  minLength: 1,
  maxLength: nameLength,
  description: "What it is for: `incident`, `review`, `reference`, ...",
});

const links = {
  incident_type_ids: t.Optional(reasons.incident_type_ids),
  incident_priority_ids: t.Optional(reasons.incident_priority_ids),
  term_ids: t.Optional(reasons.term_ids),
};

const view = {
  id,
  name: t.String(),
  description: t.String(),
  resource_type: t.String(),
  plugin_slug: nullable(t.String()),
  resource_id: nullable(t.String()),
  weblink: nullable(t.String()),
  incident_id: nullable(id),
  ...shownReasons,
  version,
  created_at: instant,
  updated_at: instant,
};

export const documentView = t.Object(view, closed);

export const documentParams = t.Object({ document_id: idText }, closed);

export const documentQuery = listQuery("`id`, `-id` (default), `name` or `-name`; with `q` by rank", {
  q,
  incident_id: t.Optional(idText),
  resource_type: t.Optional(t.String({ maxLength: nameLength })),
  name: t.Optional(t.String({ maxLength: nameLength })),
});

export const newDocument = t.Object(
  {
    name,
    description: t.Optional(description),
    resource_type: resourceType,
    weblink: t.Optional(weblink),
    incident_id: t.Optional(nullable(id)),
    plugin_slug: t.Optional(nullable(name)),
    resource_id: t.Optional(nullable(name)),
    ...links,
  },
  closed,
);

const written = { name, description, resource_type: resourceType, weblink, ...links, version };

/**
 * All fields are required, since a PUT replaces the record and an omitted field would be lost. Links may be omitted,
 * and then stay.
 */
export const changedDocument = t.Object({ ...written, ...readOnly(view, written) }, closed);

export function fieldsOf(body: Static<typeof newDocument>): DocumentFields {
  const { name, description = "", resourceType, weblink = null, ...of } = fromApi(body);
  const { incidentTypeIds, incidentPriorityIds, termIds } = of;
  return { name, description, resourceType, weblink, incidentTypeIds, incidentPriorityIds, termIds };
}
