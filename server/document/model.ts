import { type Static, t } from "elysia";
import type { Document, DocumentFields } from "../../core/incident/document/document.ts";
import { nameLength, urlLength } from "../../platform/text.ts";
import { description, name, reasons, reasonsOf, shownReasons, viewOfReasons } from "../catalog/fields.ts";
import {
  closed,
  id,
  idText,
  instant,
  listQuery,
  nullable,
  pageOf,
  readOnly,
  version,
} from "../http/schema.ts";

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

export const documentPage = pageOf(documentView);

export const documentParams = t.Object({ document_id: idText }, closed);

export const documentQuery = t.Object(
  {
    ...listQuery,
    sort: t.Optional(t.String({ description: "`id`, `-id` (default), `name` or `-name`; with `q` by rank" })),
    incident_id: t.Optional(idText),
    resource_type: t.Optional(t.String({ maxLength: nameLength })),
    name: t.Optional(t.String({ maxLength: nameLength })),
  },
  closed,
);

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

export function viewOf(document: Document): Static<typeof documentView> {
  return {
    id: document.id,
    name: document.name,
    description: document.description,
    resource_type: document.resourceType,
    plugin_slug: document.pluginSlug,
    resource_id: document.resourceId,
    weblink: document.weblink,
    incident_id: document.incidentId,
    ...viewOfReasons(document),
    version: document.version,
    created_at: document.createdAt.toISOString(),
    updated_at: document.updatedAt.toISOString(),
  };
}

export function fieldsOf(body: Static<typeof newDocument>): DocumentFields {
  const { name, description = "", resource_type: resourceType, weblink = null } = body;
  return { name, description, resourceType, weblink, ...reasonsOf(body) };
}
