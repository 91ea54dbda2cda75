import { getTableColumns } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import {
  document,
  documentIncidentPriority,
  documentIncidentType,
  documentTerm,
} from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import { descriptionLength, parseName, parseText, parseUrl } from "../../../platform/text.ts";
import { toIncidentPriority, toIncidentType, toTerm } from "../../catalog/link.ts";
import { type ReasonLinks, type Reasons, reasonColumns } from "../../catalog/reason.ts";

const { id, name, description, resourceType, pluginSlug, resourceId, weblink, incidentId } =
  getTableColumns(document);

/** For which incidents a document is proposed. Its terms are those that a person gave it, not those found in its text. */
export const documentLinks: ReasonLinks = {
  incidentTypeIds: {
    table: documentIncidentType,
    owner: documentIncidentType.documentId,
    to: documentIncidentType.incidentTypeId,
    target: toIncidentType,
  },
  incidentPriorityIds: {
    table: documentIncidentPriority,
    owner: documentIncidentPriority.documentId,
    to: documentIncidentPriority.incidentPriorityId,
    target: toIncidentPriority,
  },
  termIds: {
    ...{ table: documentTerm, owner: documentTerm.documentId, to: documentTerm.termId, target: toTerm },
    ours: { source: "Given" },
  },
};

/** What is shown of a document: neither its search vector nor what the worker notes about it. */
export const documentColumns = {
  ...{ id, name, description, resourceType, pluginSlug, resourceId, weblink, incidentId },
  version: document.version,
  createdAt: document.createdAt,
  updatedAt: document.updatedAt,
  ...reasonColumns(documentLinks, document.id),
};

export type Document = SelectResultFields<typeof documentColumns>;

/**
 * What a PUT replaces. Where a document belongs and where its text is are settled when it is made. Links that are not
 * given stay what they are.
 */
export interface DocumentFields extends Partial<Reasons> {
  name: string;
  description: string;
  resourceType: string;
  weblink: string | null;
}

/** @throws InvalidInput naming the field as the API calls it */
export function parseDocument(fields: DocumentFields): Omit<DocumentFields, keyof Reasons> {
  return {
    name: parseName("name", fields.name),
    description: parseText("description", fields.description, descriptionLength),
    resourceType: parseName("resource_type", fields.resourceType),
    weblink: fields.weblink === null ? null : parseUrl("weblink", fields.weblink),
  };
}

/** For what is not there and for what the actor may not read, alike. */
export function noSuchDocument(): NotFound {
  return new NotFound("There is no such document");
}
