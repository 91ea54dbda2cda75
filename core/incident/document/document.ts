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
import { type ReasonLinks, type Reasons, reasonColumns } from "../../catalog/reason.ts";

const { taskCursor, taskSyncedAt, contentHash, termContentHash, termVocabulary, search, ...columns } =
  getTableColumns(document);

/** The incidents for which a document is proposed. These terms were given by a person, not found in its text. */
export const documentLinks: ReasonLinks = {
  incidentTypeIds: { owner: documentIncidentType.documentId, to: documentIncidentType.incidentTypeId },
  incidentPriorityIds: {
    owner: documentIncidentPriority.documentId,
    to: documentIncidentPriority.incidentPriorityId,
  },
  termIds: { owner: documentTerm.documentId, to: documentTerm.termId, ours: { source: "Given" } },
};

/** The visible columns of a document: neither its search vector nor the worker's notes. */
export const documentColumns = {
  ...columns,
  ...reasonColumns(documentLinks, document.id),
};

export type Document = SelectResultFields<typeof documentColumns>;

/**
 * What a PUT replaces. A document's incident and the place of its text are fixed when it is created. Omitted links stay
 * unchanged.
 */
export interface DocumentFields extends Partial<Reasons> {
  name: string;
  description: string;
  resourceType: string;
  weblink: string | null;
}

/** @throws InvalidInput with the API's name of the field */
export function parseDocument(fields: DocumentFields): Omit<DocumentFields, keyof Reasons> {
  return {
    name: parseName("name", fields.name),
    description: parseText("description", fields.description, descriptionLength),
    resourceType: parseName("resource_type", fields.resourceType),
    weblink: fields.weblink === null ? null : parseUrl("weblink", fields.weblink),
  };
}

/** The same error for documents that do not exist and those that the actor may not read. */
export function noSuchDocument(): NotFound {
  return new NotFound("There is no such document");
}
