import { and, eq } from "drizzle-orm";
import { document } from "../../../drizzle/schema/index.ts";
import { nameLength, parseText } from "../../../platform/text.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import {
  type AnyReader,
  type IncidentRef,
  mayReadOf,
  type Reader,
  readableKindsOf,
} from "../visibility/visibility.ts";
import { type Document, documentColumns } from "./document.ts";

export interface DocumentQuery extends ListQuery {
  incidentId?: number;
  resourceType?: string;
  name?: string;
}

const documents: List<"id" | "name"> = {
  name: "documents",
  id: document.id,
  search: document.search,
  sorts: { id: { by: document.id, kind: "id" }, name: { by: document.name, kind: "text" } },
  defaultSort: "-id",
};

/** Returns a page of the documents that the actor may read, newest first. @throws InvalidInput */
export async function listDocuments(
  { db }: Context,
  actor: Actor,
  query: DocumentQuery,
): Promise<{ items: Document[]; next_cursor: string | null }> {
  const { incidentId } = query;
  const resourceType = query.resourceType && parseText("resource_type", query.resourceType, nameLength);
  const name = query.name && parseText("name", query.name, nameLength);
  const page = startPage(documents, query, { incidentId, resourceType, name });
  const select = (reader: Reader | AnyReader, of: IncidentRef) =>
    db
      .select({ item: documentColumns, key: page.key })
      .from(document)
      .where(
        page.within(
          and(
            mayReadOf(reader, document.incidentId),
            incidentId === undefined ? undefined : eq(document.incidentId, of),
            resourceType === undefined ? undefined : eq(document.resourceType, resourceType),
            name === undefined ? undefined : eq(document.name, name),
          ),
          readableKindsOf(reader, document),
        ),
      )
      .orderBy(...page.orderBy)
      .limit(page.limit);
  return page.finish(await page.run(db, actor, select));
}
