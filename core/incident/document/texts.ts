import { and, asc, eq, gt, inArray, isNotNull, ne, or, type SQLWrapper, sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { document, documentContent, documentVersion } from "../../../drizzle/schema/index.ts";
import { asTyped } from "../../../platform/markdown.ts";

/** The document plugin whose texts are in our database (`document_content`), where they can be read directly. */
export const ownTextSlug = "markdown";

/** The post-mortem is the document of this type, which an incident type may have a template for. */
export const postmortemType = "review";

type Reader = Pick<Database, "select">;

/** Where a document's text is, and from which text its terms were found. */
export interface TextPlace extends Pick<
  typeof document.$inferSelect,
  "id" | "name" | "resourceType" | "resourceId" | "weblink" | "termContentHash" | "termVocabulary"
> {
  pluginSlug: string;
}

/**
 * Returns documents whose text must be searched for these terms, in order of their ids. If the text is in our database,
 * documents that were already searched for them are left out.
 */
export async function pageOfTexts(
  db: Reader,
  { vocabulary, afterId, limit }: { vocabulary: string; afterId: number; limit: number },
): Promise<TextPlace[]> {
  const { id, name, resourceType, resourceId, weblink, pluginSlug, termContentHash, termVocabulary } =
    document;
  // Not a join: if PostgreSQL expects few documents after `afterId`, it would read all of them for each page.
  const ownHash = sql`(
    select ${documentContent.hash} from ${documentContent} where ${documentContent.documentId} = ${document.id})`;
  const rows = await db
    .select({ id, name, resourceType, resourceId, weblink, pluginSlug, termContentHash, termVocabulary })
    .from(document)
    .where(
      and(
        gt(id, afterId),
        isNotNull(pluginSlug),
        isNotNull(resourceId),
        or(
          ne(pluginSlug, ownTextSlug),
          sql`${termVocabulary} is distinct from ${vocabulary}`,
          sql`${termContentHash} is distinct from ${ownHash}`,
        ),
      ),
    )
    .orderBy(asc(id))
    .limit(limit);
  return rows.flatMap(({ pluginSlug, ...row }) => (pluginSlug === null ? [] : [{ ...row, pluginSlug }]));
}

/**
 * The documents of an incident that link to an entry of its timeline, or did so in an earlier version, and may have its
 * words. With `texts`, those that have one of these words: a draft or a template writes the description without a link. Only
 * texts in our database are looked at.
 */
export async function documentsCiting(
  db: Reader,
  { incidentId, eventId, texts }: { incidentId: number; eventId: number; texts: readonly string[] },
): Promise<{ id: number; name: string }[]> {
  const link = `/incidents/${incidentId}?at=${eventId}#`;
  // As they are, and as a draft has them. Escapes are ignored, because a template has others.
  const words = texts
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .flatMap((text) => [text, asTyped(text)].map((one) => one.replaceAll(/[\\\r]/g, "")));
  const cites = (column: SQLWrapper) => {
    const plain = sql`replace(replace(${column}, chr(92), ''), chr(13), '')`;
    return words.length === 0
      ? sql`strpos(${column}, ${link}) > 0`
      : or(...[...new Set(words)].map((one) => sql`strpos(${plain}, ${one}) > 0`));
  };
  const of = ({ documentId, content }: typeof documentContent | typeof documentVersion) =>
    sql`exists (select from ${documentId.table} where ${documentId} = ${document.id} and ${cites(content)})`;
  return db
    .select({ id: document.id, name: document.name })
    .from(document)
    .where(and(eq(document.incidentId, incidentId), or(of(documentContent), of(documentVersion))))
    .orderBy(asc(document.id));
}

/** The texts in our database, by the documents' ids. */
export async function ownTexts(db: Reader, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({ id: documentContent.documentId, text: documentContent.content })
    .from(documentContent)
    .where(inArray(documentContent.documentId, [...ids]));
  return new Map(rows.map(({ id, text }) => [id, text]));
}
