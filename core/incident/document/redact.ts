import { and, eq, isNotNull, ne, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { document, documentContent, documentVersion } from "../../../drizzle/schema/index.ts";
import { Conflict, NotFound } from "../../../platform/errors.ts";
import { sha256 } from "../../../platform/secret.ts";
import { parseName } from "../../../platform/text.ts";
import { audit } from "../../audit.ts";
import { type Actor, type Context, requireAdmin } from "../../context.ts";
import { lockIncidentOf } from "../incident/lock.ts";
import { redactedText } from "../timeline/entry.ts";
import { recordEvent } from "../timeline/event.ts";
import { noSuchDocument } from "./document.ts";
import { ownTextSlug } from "./texts.ts";

export interface DocumentRedaction {
  /** Of the current text. */
  version: number;
  /** How many texts were removed. */
  texts: number;
}

/**
 * Removes the text of a document with all its versions from the database, or one earlier version. The reason is visible on
 * the timeline and in the audit log. Only admins may do so.
 *
 * @throws Forbidden before anything is looked up
 * @throws NotFound also for a version that is not kept
 * @throws Conflict when it was redacted already, is the current version, or its text is not in our database
 */
export async function redactDocument(
  { db, clock }: Pick<Context, "db" | "clock">,
  actor: Actor,
  wanted: { id: number; version?: number; reason: string; address: string },
): Promise<DocumentRedaction> {
  const { id, version, address } = wanted;
  requireAdmin(actor, "redact a text");
  const reason = parseName("reason", wanted.reason);
  return db.transaction(async (tx) => {
    await lockIncidentOf(tx, document, id, actor);
    const at = clock.now();
    // As a change of the text does, so that no version is added meanwhile.
    const [found] = await tx
      .select({ name: document.name, incidentId: document.incidentId, pluginSlug: document.pluginSlug })
      .from(document)
      .where(eq(document.id, id))
      .for("no key update");
    if (!found) throw noSuchDocument();
    const { name, incidentId, pluginSlug } = found;
    if (pluginSlug !== null && pluginSlug !== ownTextSlug)
      throw new Conflict(`The text of this document is stored by the plugin ${pluginSlug}: remove it there`);
    const redaction =
      version === undefined
        ? await redactAll(tx, { id, author: actor.user, at })
        : await redactVersion(tx, { id, version });
    if (redaction.texts === 0) throw new Conflict("This text was redacted already");
    const data = { document_id: id, ...(version !== undefined && { version: String(version) }), reason };
    const action = "document.redacted";
    await audit(tx, { at, actor: actor.user, action, address, subject: String(id), data });
    if (incidentId !== null) {
      const what = version === undefined ? "Text" : `Version ${version} of the text`;
      await recordEvent(tx, {
        incidentId,
        at,
        actor: actor.user,
        kind: action,
        description: `${what} of a document redacted: ${name}: ${reason}`,
        data,
      });
    }
    return redaction;
  });
}

/** Also ends the current text, with a version of its own, so that open editors get a conflict. */
async function redactAll(
  tx: Transaction,
  { id, author, at }: { id: number; author: string; at: Date },
): Promise<DocumentRedaction> {
  const before = await currentOf(tx, id);
  const hash = sha256(redactedText);
  const [replaced] = await tx
    .update(documentContent)
    .set({ content: redactedText, hash, version: before + 1, updatedAt: at })
    .where(and(eq(documentContent.documentId, id), ne(documentContent.content, redactedText)))
    .returning({ version: documentContent.version });
  const earlier = await tx
    .update(documentVersion)
    .set({ content: redactedText })
    .where(and(eq(documentVersion.documentId, id), holdsText))
    .returning({ version: documentVersion.version });
  if (replaced) {
    const of = { documentId: id, version: before };
    await tx
      .insert(documentVersion)
      .values([
        { ...of, content: redactedText, at },
        { ...of, version: replaced.version, author, at },
      ])
      .onConflictDoUpdate({
        target: [documentVersion.documentId, documentVersion.version],
        set: { content: sql`excluded.content` },
      });
    // As if its tasks were known, so that those of the removed text stay; what is being read from that text is not kept.
    const taskCursor = String(replaced.version);
    await tx.update(document).set({ contentHash: hash, taskCursor }).where(eq(document.id, id));
  }
  return { version: replaced?.version ?? before, texts: earlier.length + (replaced ? 1 : 0) };
}

const holdsText = and(isNotNull(documentVersion.content), ne(documentVersion.content, redactedText));

async function redactVersion(
  tx: Transaction,
  { id, version }: { id: number; version: number },
): Promise<DocumentRedaction> {
  const current = await currentOf(tx, id);
  if (version === current)
    throw new Conflict(
      `Version ${version} is the current text: remove the words from it first, or redact all versions`,
    );
  const of = and(eq(documentVersion.documentId, id), sql`${documentVersion.version} = ${version}::bigint`);
  const redacted = await tx
    .update(documentVersion)
    .set({ content: redactedText })
    .where(and(of, holdsText))
    .returning({ version: documentVersion.version });
  if (redacted.length === 0 && !(await tx.$count(documentVersion, of)))
    throw new NotFound(`Version ${version} of this text is not kept`);
  return { version: current, texts: redacted.length };
}

/** @throws Conflict when it has no text */
async function currentOf(tx: Transaction, id: number): Promise<number> {
  const [found] = await tx
    .select({ version: documentContent.version })
    .from(documentContent)
    .where(eq(documentContent.documentId, id));
  if (!found) throw new Conflict("This document has no text");
  return found.version;
}
