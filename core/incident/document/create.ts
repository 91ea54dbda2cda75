import { document } from "../../../drizzle/schema/index.ts";
import { Conflict, Forbidden, InvalidInput } from "../../../platform/errors.ts";
import { parseName } from "../../../platform/text.ts";
import { setReasons } from "../../catalog/reason.ts";
import type { Actor, Context } from "../../context.ts";
import { longestSlug, slugPattern } from "../../plugin/check.ts";
import { lockNamedIncident } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { type Document, type DocumentFields, documentLinks, parseDocument } from "./document.ts";
import { getDocument } from "./get.ts";

export interface NewDocument extends DocumentFields {
  incidentId: number | null;
  /** Where its text is: in this plugin, under this id. Both or neither. */
  pluginSlug: string | null;
  resourceId: string | null;
}

/**
 * Creates a document, and records it on the timeline of its incident.
 *
 * Only admins may choose where a text is stored: otherwise a member could create a document that shows the text of a
 * Restricted one.
 *
 * @throws Forbidden when a member names a plugin
 * @throws InvalidInput also for an incident that does not exist or that the actor may not read, and for a type, a
 * priority or a term that does not exist
 * @throws Conflict when another document has this text
 */
export async function createDocument(context: Context, actor: Actor, wanted: NewDocument): Promise<Document> {
  const { db, clock } = context;
  const { incidentId } = wanted;
  const resource = parseResource(wanted);
  if (resource && !actor.admin) throw new Forbidden("Only an admin can choose the plugin that stores a text");
  const values = { ...parseDocument(wanted), ...resource, incidentId };
  return db.transaction(async (tx) => {
    // So that it is neither deleted nor Restricted before we are done.
    if (incidentId !== null) await lockNamedIncident(tx, actor, incidentId);
    const at = clock.now();
    const [created] = await tx
      .insert(document)
      .values({ ...values, createdAt: at, updatedAt: at })
      .onConflictDoNothing({ target: [document.pluginSlug, document.resourceId] })
      .returning({ id: document.id, name: document.name });
    if (!created) throw new Conflict("Another document already uses this plugin_slug and resource_id");
    await setReasons(tx, documentLinks, created.id, wanted);
    if (incidentId !== null) {
      await recordEvent(tx, {
        incidentId,
        at,
        actor: actor.user,
        kind: "document.created",
        description: `Document added: ${created.name}`,
        data: { document_id: created.id },
      });
    }
    return getDocument({ ...context, db: tx }, actor, created.id);
  });
}

function parseResource({ pluginSlug, resourceId }: NewDocument) {
  if (pluginSlug === null && resourceId === null) return undefined;
  if (pluginSlug === null || resourceId === null)
    throw new InvalidInput("resource_id", "Give plugin_slug and resource_id together, or neither");
  // The plugin may not exist yet, but the index over both columns cannot hold two long texts.
  if (pluginSlug.length > longestSlug || !slugPattern.test(pluginSlug))
    throw new InvalidInput("plugin_slug", "The field plugin_slug is not a valid plugin slug");
  return {
    pluginSlug,
    resourceId: parseName("resource_id", resourceId),
  };
}
