import { and, eq, isNull, sql } from "drizzle-orm";
import { document } from "../../../drizzle/schema/index.ts";
import { Conflict, Unavailable } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import { callPlugin } from "../../plugin/call.ts";
import type { AppContext } from "../../plugin/context.ts";
import { documentFacts } from "../incident/facts.ts";
import { lockIncidentOf } from "../incident/lock.ts";
import { answerOf } from "../steps/ask.ts";
import { keyOfText } from "../steps/make_documents.ts";
import { isTaken } from "../steps/resource.ts";
import { recordEvent } from "../timeline/event.ts";
import { mayReadOf } from "../visibility/visibility.ts";
import type { Document } from "./document.ts";
import { getDocument } from "./get.ts";

/** A document that may have no text yet. */
export type Keepable = Pick<
  Document,
  "id" | "name" | "resourceType" | "pluginSlug" | "resourceId" | "weblink" | "incidentId"
>;

/**
 * Creates a document's text in the first document plugin. Two concurrent calls create the same text, and the later one
 * then fails with its version. A text that a step (steps/make_documents.ts) has yet to create is created with that
 * step's key, so that both create one text. It is also how a document gets a text if its step is no longer retried.
 *
 * @throws NotFound when it was deleted meanwhile, or the actor may no longer read it
 * @throws Conflict when it has a text by now, or no document plugin is enabled
 * @throws Unavailable when the plugin fails
 */
export async function startText(
  context: AppContext,
  actor: Actor,
  found: Keepable,
  version: string | null,
): Promise<{ found: Keepable; version: string | null }> {
  if (version !== null) throw new Conflict("This document has no text yet: its version is null");
  const [plugin] = context.plugins.ofType("document");
  if (!plugin) throw new Conflict("This document has no text, and no document plugin is enabled");
  const { id, name, resourceType, incidentId } = found;
  const wanted = { document: { id, name, resourceType }, name, variables: {}, author: actor.user };
  const isAwaited = found.pluginSlug !== null && incidentId !== null;
  const key = isAwaited ? keyOfText({ incident: { id: incidentId } }, resourceType) : `document:${id}:text`;
  const outcome = await callPlugin(plugin, "create", wanted, { key });
  // A plugin may fail because the document was deleted meanwhile.
  if (!outcome.ok) await getDocument(context, actor, id);
  const made = answerOf(outcome);
  const start = context.db.transaction(async (tx) => {
    if (isAwaited) await lockIncidentOf(tx, document, id, actor);
    const at = context.clock.now();
    const [started] = await tx
      .update(document)
      .set({
        pluginSlug: plugin.slug,
        resourceId: made.resourceId,
        ...(found.weblink === null && made.weblink !== undefined ? { weblink: made.weblink } : {}),
        version: sql`${document.version} + 1`,
        updatedAt: at,
      })
      .where(and(eq(document.id, id), isNull(document.resourceId), mayReadOf(actor, document.incidentId)))
      .returning();
    if (!started) {
      await getDocument({ ...context, db: tx }, actor, id);
      throw new Conflict("This document was given a text in the meantime");
    }
    if (isAwaited) {
      await recordEvent(tx, {
        incidentId,
        at,
        actor: actor.user,
        kind: "document.created",
        description: `Document added: ${started.name}`,
        data: { document_id: id },
      });
    }
    return started;
  });
  const started = await start.catch((error: unknown) => {
    if (!isTaken(error)) throw error;
    throw new Unavailable(`${plugin.slug} returned the text of another document`, { cause: error });
  });
  const facts = documentFacts(started);
  const state = facts && answerOf(await callPlugin(plugin, "get", { document: facts }));
  return { found: started, version: state?.version ?? null };
}
