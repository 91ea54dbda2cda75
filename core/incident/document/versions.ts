import { sql } from "drizzle-orm";
import { document, documentContent, documentVersion } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { redactedText } from "../timeline/entry.ts";
import { getDocument } from "./get.ts";
import { ownTextSlug } from "./texts.ts";

/** A state of a document's text. */
export interface DocumentVersion {
  version: number;
  /** A user name, `worker` or `system`; null if it was written by a release that kept no versions. */
  author: string | null;
  at: Date;
  isRedacted: boolean;
}

const { version, author, at } = documentVersion;

const versions: List<"version"> = {
  name: "document_versions",
  id: version,
  sorts: { version: { by: version, kind: "id" } },
  defaultSort: "-version",
};

/** As SQL, because drizzle allows a column only with its table. */
const shown = {
  id: sql`${version}`.mapWith(version),
  version: sql`${version}`.mapWith(version),
  author: sql<string | null>`${author}`,
  at: sql`${at}`.mapWith(at),
  isRedacted: sql<boolean>`redacted`,
};

/**
 * Returns a page of the versions of a document's text, newest first, without their texts.
 *
 * @throws NotFound also when the actor may not read the document, or svc keeps no versions of its text
 * @throws InvalidInput
 */
export async function listVersions(
  context: Context,
  actor: Actor,
  { id, ...query }: ListQuery & { id: number },
): Promise<{ items: DocumentVersion[]; next_cursor: string | null }> {
  await findVersioned(context, actor, id);
  const page = startPage(versions, query, { id });
  // The current text has no version if it was last written by an earlier release.
  const all = sql`(
    select version, author, at, coalesce(content,
        (select content from ${documentContent} where document_id = ${id})) = ${redactedText} as redacted
      from ${documentVersion} where document_id = ${id}
    union all
    select version, null, updated_at, content = ${redactedText} from ${documentContent} c where document_id = ${id} and not exists (
      select from ${documentVersion} v where v.document_id = c.document_id and v.version = c.version)
  ) as document_version`;
  const rows = await context.db
    .select({ item: shown, key: page.key })
    .from(all)
    .where(page.within())
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows);
}

/**
 * Returns a version with its text.
 *
 * @throws NotFound as listVersions, and when this version is not kept
 */
export async function getVersion(
  context: Context,
  actor: Actor,
  { id, version: wanted }: { id: number; version: number },
): Promise<DocumentVersion & { text: string }> {
  await findVersioned(context, actor, id);
  const [found] = await context.db
    .select({
      author,
      at: sql`coalesce(${at}, ${documentContent.updatedAt})`.mapWith(at),
      text: sql<string | null>`coalesce(${documentVersion.content}, ${documentContent.content})`,
    })
    .from(document)
    .leftJoin(documentVersion, sql`${documentVersion.documentId} = ${id} and ${version} = ${wanted}::bigint`)
    .leftJoin(
      documentContent,
      sql`${documentContent.documentId} = ${id} and ${documentContent.version} = ${wanted}::bigint`,
    )
    .where(sql`${document.id} = ${id}`);
  if (!found || found.text === null) throw new NotFound(`Version ${wanted} of this text is not kept`);
  const { text } = found;
  const isRedacted = text === redactedText;
  return { version: wanted, author: found.author, at: found.at, text, isRedacted };
}

/** @throws NotFound */
async function findVersioned(context: Context, actor: Actor, id: number): Promise<void> {
  const { pluginSlug } = await getDocument(context, actor, id);
  if (pluginSlug === ownTextSlug) return;
  throw new NotFound(
    pluginSlug === null
      ? "This document has no text, and therefore no versions"
      : `svc keeps no versions of this document: its text is stored by the plugin ${pluginSlug}`,
  );
}
