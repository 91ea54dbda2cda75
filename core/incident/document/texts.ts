import { and, asc, eq, gt, inArray, isNotNull, ne, or, sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { document, documentContent } from "../../../drizzle/schema/index.ts";

/** The document plugin whose texts are in our database (`document_content`), where they are read without asking it. */
export const ownTextSlug = "markdown";

type Reader = Pick<Database, "select">;

/** Where a document's text is, and of which text its terms are. */
export interface TextPlace extends Pick<
  typeof document.$inferSelect,
  "id" | "name" | "resourceType" | "resourceId" | "weblink" | "termContentHash" | "termVocabulary"
> {
  pluginSlug: string;
}

/**
 * Documents whose text has to be looked at for these terms, in the order of their ids. Of a text that we keep ourselves we
 * know what it is, so one in which they were looked for already is not among them.
 */
export async function pageOfTexts(
  db: Reader,
  { vocabulary, afterId, limit }: { vocabulary: string; afterId: number; limit: number },
): Promise<TextPlace[]> {
  const { id, name, resourceType, resourceId, weblink, pluginSlug, termContentHash, termVocabulary } =
    document;
  const rows = await db
    .select({ id, name, resourceType, resourceId, weblink, pluginSlug, termContentHash, termVocabulary })
    .from(document)
    .leftJoin(documentContent, eq(documentContent.documentId, document.id))
    .where(
      and(
        gt(id, afterId),
        isNotNull(pluginSlug),
        isNotNull(resourceId),
        or(
          ne(pluginSlug, ownTextSlug),
          sql`${termVocabulary} is distinct from ${vocabulary}`,
          sql`${termContentHash} is distinct from ${documentContent.hash}`,
        ),
      ),
    )
    .orderBy(asc(id))
    .limit(limit);
  return rows.flatMap(({ pluginSlug, ...row }) => (pluginSlug === null ? [] : [{ ...row, pluginSlug }]));
}

/** The texts of documents that we keep ourselves, by the documents' ids. */
export async function ownTexts(db: Reader, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({ id: documentContent.documentId, text: documentContent.content })
    .from(documentContent)
    .where(inArray(documentContent.documentId, [...ids]));
  return new Map(rows.map(({ id, text }) => [id, text]));
}
