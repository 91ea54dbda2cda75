import { eq } from "drizzle-orm";
import { type EntryText, eventRevision } from "../../../drizzle/schema/index.ts";
import { Forbidden } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { type EventIds, getEvent } from "./get.ts";

const revisions: List<"version"> = {
  name: "revisions",
  id: eventRevision.version,
  sorts: { version: { by: eventRevision.version, kind: "id" } },
  defaultSort: "-version",
};

/** An earlier text: its fields, who wrote it, and when. */
export type Revision = { version: number; author: string; at: Date } & EntryText;

/**
 * Returns a page of the earlier texts of an entry, newest first.
 *
 * @throws NotFound also for an event of another incident
 * @throws Forbidden unless the actor is an admin
 * @throws InvalidInput
 */
export async function listRevisions(
  context: Context,
  actor: Actor,
  query: ListQuery & EventIds,
): Promise<{ items: Revision[]; next_cursor: string | null }> {
  const { eventId } = query;
  if (!actor.admin) throw new Forbidden("Only an admin can read earlier texts");
  await getEvent(context, actor, query);
  const page = startPage(revisions, query, { eventId });
  const { version: id, author, at, text } = eventRevision;
  const rows = await context.db
    .select({ id, author, at, text, key: page.key })
    .from(eventRevision)
    .where(page.within(eq(eventRevision.eventId, eventId)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  const { items, next_cursor } = page.finish(rows.map(({ key, ...item }) => ({ item, key })));
  return {
    items: items.map(({ id: version, text, ...item }) => ({ version, ...item, ...text })),
    next_cursor,
  };
}
