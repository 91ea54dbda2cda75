import { eq } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { document } from "../../../drizzle/schema/index.ts";
import { Changed, Conflict, NotFound, Unavailable } from "../../../platform/errors.ts";
import { parseText } from "../../../platform/text.ts";
import type { Actor, Context } from "../../context.ts";
import { type ActivePlugin, callPlugin } from "../../plugin/call.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { DocumentFacts } from "../../plugin/facts.ts";
import { documentFacts } from "../incident/facts.ts";
import { lockIncidentOf } from "../incident/lock.ts";
import { answerOf } from "../steps/ask.ts";
import { recordEvent } from "../timeline/event.ts";
import { noSuchDocument } from "./document.ts";
import { getDocument } from "./get.ts";
import { type Keepable, startText } from "./start_text.ts";

/** Maximum characters of a document's text. */
export const longestContent = 1_000_000;

/** A document's text. `version` is its plugin's identifier of this state, or null if the plugin has none. */
export interface DocumentText {
  text: string;
  version: string | null;
}

/**
 * Reads the text of a document from the plugin that stores it.
 *
 * @throws NotFound also when the actor may not read it, or its plugin no longer has the text
 * @throws Conflict when it has no text
 * @throws Unavailable when the plugin fails or is not in use
 */
export async function getContent(context: AppContext, actor: Actor, id: number): Promise<DocumentText> {
  const found = await getDocument(context, actor, id);
  const { plugin, facts } = keeperOf(context, found);
  const kept = answerOf(await callPlugin(plugin, "text", { document: facts }));
  if (kept === null) throw textIsGone();
  return { text: kept.text, version: kept.version ?? null };
}

/**
 * Replaces the text of a document through its plugin. A document without a text gets it in the first document plugin.
 * `version` is then null, as it is for a plugin without versions: this plugin's text must still be `before`, if that is
 * given. An edit between this comparison and the plugin's own writing is lost. `data` is for the event on the timeline.
 * `check` throws if the text must not be written any more. A plugin in our database writes in the same transaction, which has
 * the incident locked.
 *
 * @throws InvalidInput
 * @throws NotFound as getContent
 * @throws Conflict when the text is no longer at `version` or `before`, or no document plugin is enabled
 * @throws Unavailable as getContent
 */
export async function putContent(
  context: AppContext,
  actor: Actor,
  change: DocumentText & {
    id: number;
    before?: string;
    data?: Record<string, unknown>;
    check?: (db: Context["db"]) => Promise<void>;
  },
): Promise<DocumentText> {
  const { id, version, data } = change;
  const text = parseText("text", change.text, longestContent);
  const found = await getDocument(context, actor, id);
  const start =
    found.resourceId === null ? await startText(context, actor, found, version) : { found, version };
  const { plugin, facts } = keeperOf(context, start.found);
  // A plugin replaces the text unconditionally if it gets no version.
  if (start.version === null) {
    await expectVersion(plugin, facts, null);
    if (change.before !== undefined && found.resourceId !== null)
      await expectText(plugin, facts, change.before);
  }
  const update = async (db: Context["db"], within?: Transaction) => {
    await change.check?.(db);
    const updated = await callPlugin(
      plugin,
      "update",
      {
        document: facts,
        text,
        author: actor.user,
        ...(start.version === null ? {} : { version: start.version }),
      },
      { within },
    );
    if (updated.ok)
      await recordContentChange({ ...context, db }, actor, {
        id,
        version: updated.value.version ?? null,
        data,
      });
    return updated;
  };
  const updated = await (plugin.methodsWithin
    ? context.db.transaction(async (tx) => {
        await lockIncidentOf(tx, document, id, actor);
        return update(tx, tx);
      })
    : update(context.db));
  if (!updated.ok) {
    await expectVersion(plugin, facts, start.version);
    throw new Unavailable(updated.detail);
  }
  return { text, version: updated.value.version ?? null };
}

/** Returns the plugin that stores the document's text, and the facts by which it knows the document. */
function keeperOf({ plugins }: AppContext, found: Keepable) {
  if (found.pluginSlug === null) throw new Conflict("This document has no text");
  const facts = documentFacts(found);
  if (!facts) throw new Conflict(stillMade);
  const plugin = plugins.find("document", found.pluginSlug);
  if (!plugin) throw new Unavailable("The plugin that stores the text of this document is not enabled");
  return { plugin, facts };
}

/** For a document whose plugin did not answer in time when its incident was reported (steps/make_documents.ts). */
const stillMade =
  "The text of this document has not been created yet: POST /incidents/{incident_id}/retry tries again, PUT writes another";

/** @throws Conflict when the text has another version; NotFound when it is gone */
async function expectVersion(
  plugin: ActivePlugin<"document">,
  facts: DocumentFacts,
  expected: string | null,
): Promise<void> {
  const now = answerOf(await callPlugin(plugin, "get", { document: facts }));
  if (now === null) throw textIsGone();
  if ((now.version ?? null) !== expected) throw new Changed("text", now.version ?? null);
}

/** @throws Conflict when the text is another one; NotFound when it is gone */
async function expectText(
  plugin: ActivePlugin<"document">,
  facts: DocumentFacts,
  expected: string,
): Promise<void> {
  const now = answerOf(await callPlugin(plugin, "text", { document: facts }));
  if (now === null) throw textIsGone();
  if (now.text !== expected) throw new Conflict("This text has changed since you read it");
}

async function recordContentChange(
  { db, clock }: Context,
  actor: Actor,
  { id, version: written, data }: { id: number; version: string | null; data?: Record<string, unknown> },
): Promise<void> {
  await db.transaction(async (tx) => {
    await lockIncidentOf(tx, document, id, actor);
    const { name, incidentId } = document;
    const [changed] = await tx
      .select({ name, incidentId })
      .from(document)
      .where(eq(document.id, id))
      .for("key share");
    if (!changed) throw noSuchDocument();
    if (changed.incidentId === null) return;
    await recordEvent(tx, {
      incidentId: changed.incidentId,
      at: clock.now(),
      actor: actor.user,
      kind: "document.updated",
      description: `Text of a document changed: ${changed.name}`,
      data: { document_id: id, ...(written !== null && { version: written }), ...data },
    });
  });
}

function textIsGone(): NotFound {
  return new NotFound("The text of this document is gone");
}
