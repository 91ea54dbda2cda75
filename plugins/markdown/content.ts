import { and, eq, lte, sql } from "drizzle-orm";
import type { Context } from "../../core/context.ts";
import { longestContent } from "../../core/incident/document/content.ts";
import { inTransaction } from "../../core/transaction.ts";
import { document, documentContent, documentVersion } from "../../drizzle/schema/index.ts";
import { Changed, NotFound } from "../../platform/errors.ts";
import { sha256 } from "../../platform/secret.ts";
import { parseText } from "../../platform/text.ts";

/** How many versions of a text are kept. The oldest are deleted when it changes. */
export const keptVersions = 1000;

export interface Content {
  text: string;
  version: number;
}

/** The text of a document, or undefined if it has none. */
export async function readContent({ db }: Context, documentId: number): Promise<Content | undefined> {
  const [found] = await db
    .select({ text: documentContent.content, version: documentContent.version })
    .from(documentContent)
    .where(eq(documentContent.documentId, documentId));
  return found;
}

/** Stores the first text; an existing text stays. @throws InvalidInput */
export async function startContent(
  context: Context,
  { documentId, text, author }: { documentId: number; text: string; author?: string },
): Promise<void> {
  const { hash, values } = valuesOf(context, text);
  await inTransaction(context.db, async (tx) => {
    const [started] = await tx
      .insert(documentContent)
      .values({ documentId, ...values })
      .onConflictDoNothing()
      .returning({ version: documentContent.version });
    if (!started) return;
    await Promise.all([
      tx.insert(documentVersion).values({ documentId, ...started, author, at: values.updatedAt }),
      tx.update(document).set(changed(hash, started.version)).where(eq(document.id, documentId)),
    ]);
  });
}

/**
 * Replaces the text, if it is still at `version` (if given), keeps the earlier one as a version, and marks the document
 * so that it is searched for terms again.
 *
 * @throws InvalidInput
 * @throws NotFound if it has no text here
 * @throws Conflict if it is no longer at `version`
 */
export async function replaceContent(
  context: Context,
  {
    documentId,
    text,
    version,
    author,
  }: { documentId: number; text: string; version?: string; author?: string },
): Promise<number> {
  const { hash, values } = valuesOf(context, text);
  return context.db.transaction(async (tx) => {
    // Lock the document first, as its deletion does: its search vector is written right after its text.
    await tx
      .select({ id: document.id })
      .from(document)
      .where(eq(document.id, documentId))
      .for("no key update");
    await keepCurrent(tx, documentId);
    const [replaced] = await tx
      .update(documentContent)
      .set({ ...values, version: sql`${documentContent.version} + 1` })
      .where(
        and(
          eq(documentContent.documentId, documentId),
          // Compared as text, so that a version that is not a number matches nothing.
          version === undefined ? undefined : sql`${documentContent.version}::text = ${version}`,
        ),
      )
      .returning({ version: documentContent.version });
    if (replaced) {
      await tx.insert(documentVersion).values({ documentId, ...replaced, author, at: values.updatedAt });
      await tx
        .delete(documentVersion)
        .where(
          and(
            eq(documentVersion.documentId, documentId),
            lte(documentVersion.version, replaced.version - keptVersions),
          ),
        );
      await tx.update(document).set(changed(hash, replaced.version)).where(eq(document.id, documentId));
      return replaced.version;
    }
    const now = await readContent({ ...context, db: tx }, documentId);
    if (!now) throw new NotFound("This document has no text");
    throw new Changed("text", now.version);
  });
}

/** Copies the current text to its version, which an earlier release may not have written. */
async function keepCurrent(tx: Context["db"], documentId: number): Promise<void> {
  await tx.execute(sql`
    insert into ${documentVersion} (document_id, version, content, at)
    select document_id, version, content, updated_at from ${documentContent} where document_id = ${documentId}
    on conflict (document_id, version) do update set content = excluded.content`);
}

/** Succeeds if it is already gone. */
export async function removeContent({ db }: Context, documentId: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.delete(documentContent).where(eq(documentContent.documentId, documentId));
    await tx.delete(documentVersion).where(eq(documentVersion.documentId, documentId));
  });
}

/** With a cursor of its own, so that tasks that are being read from the earlier text are not kept. */
const changed = (contentHash: Uint8Array, version: number) => ({
  contentHash,
  taskCursor: `changed to ${version}`,
});

function valuesOf({ clock }: Context, text: string) {
  const content = parseText("text", text, longestContent);
  const hash = sha256(content);
  return { hash, values: { content, hash, updatedAt: clock.now() } };
}
