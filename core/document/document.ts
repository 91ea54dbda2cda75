import { getTableColumns } from "drizzle-orm";
import { document } from "../../drizzle/schema/index.ts";
import { NotFound } from "../errors.ts";
import { descriptionLength, parseName, parseText, parseUrl } from "../text.ts";

const { id, name, description, resourceType, pluginSlug, resourceId, weblink, incidentId } =
  getTableColumns(document);

/** What is shown of a document: neither its search vector nor what the worker notes about it. */
export const documentColumns = {
  ...{ id, name, description, resourceType, pluginSlug, resourceId, weblink, incidentId },
  version: document.version,
  createdAt: document.createdAt,
  updatedAt: document.updatedAt,
};

export type Document = Pick<typeof document.$inferSelect, keyof typeof documentColumns>;

/** What a PUT replaces. Where a document belongs and where its text is are settled when it is made. */
export interface DocumentFields {
  name: string;
  description: string;
  resourceType: string;
  weblink: string | null;
}

/** @throws InvalidInput naming the field as the API calls it */
export function parseDocument(fields: DocumentFields): DocumentFields {
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
