import { and, eq, sql } from "drizzle-orm";
import type { Context } from "../../core/context.ts";
import { longestContent } from "../../core/incident/document/content.ts";
import { document, documentContent } from "../../drizzle/schema/index.ts";
import { Conflict, NotFound } from "../../platform/errors.ts";
import { sha256 } from "../../platform/secret.ts";
import { parseText } from "../../platform/text.ts";

export interface Content {
  text: string;
  version: number;
}

/** The text of a document; undefined when there is none. */
export async function readContent({ db }: Context, documentId: number): Promise<Content | undefined> {
  const [found] = await db
    .select({ text: documentContent.content, version: documentContent.version })
    .from(documentContent)
    .where(eq(documentContent.documentId, documentId));
  return found;
}

/** Keeps a first text; one that is there already stays. @throws InvalidInput */
export async function startContent(context: Context, documentId: number, text: string): Promise<void> {
  const { hash, values } = valuesOf(context, text);
  await context.db.transaction(async (tx) => {
    const [started] = await tx
      .insert(documentContent)
      .values({ documentId, ...values })
      .onConflictDoNothing()
      .returning({ version: documentContent.version });
    if (started) await tx.update(document).set({ contentHash: hash }).where(eq(document.id, documentId));
  });
}

/**
 * Replaces the text, with `version` only one that is still at it, and notes on the document that its terms are to be
 * looked for again.
 *
 * @throws InvalidInput
 * @throws NotFound when it has no text here
 * @throws Conflict when it is no longer at `version`
 */
export async function replaceContent(
  context: Context,
  { documentId, text, version }: { documentId: number; text: string; version?: string },
): Promise<number> {
  const { hash, values } = valuesOf(context, text);
  return context.db.transaction(async (tx) => {
    // The document first, as whoever deletes it: what it is found by is written right behind its text.
    await tx
      .select({ id: document.id })
      .from(document)
      .where(eq(document.id, documentId))
      .for("no key update");
    const [replaced] = await tx
      .update(documentContent)
      .set({ ...values, version: sql`${documentContent.version} + 1` })
      .where(
        and(
          eq(documentContent.documentId, documentId),
          // As text: what is no number is a version that nobody has seen.
          version === undefined ? undefined : sql`${documentContent.version}::text = ${version}`,
        ),
      )
      .returning({ version: documentContent.version });
    if (replaced) {
      await tx.update(document).set({ contentHash: hash }).where(eq(document.id, documentId));
      return replaced.version;
    }
    const now = await readContent({ ...context, db: tx }, documentId);
    if (!now) throw new NotFound("This document has no text");
    throw new Conflict(`Somebody changed this text: it is at version ${now.version} now`);
  });
}

/** That it is gone already is no failure. */
export async function removeContent({ db }: Context, documentId: number): Promise<void> {
  await db.delete(documentContent).where(eq(documentContent.documentId, documentId));
}

function valuesOf({ clock }: Context, text: string) {
  const content = parseText("text", text, longestContent);
  const hash = sha256(content);
  return { hash, values: { content, hash, updatedAt: clock.now() } };
}
