import { and, asc, eq, inArray, ne, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../drizzle/client.ts";
import {
  conversation,
  conversationMessage,
  delivery,
  event,
  eventRevision,
  flowStep,
  idempotencyKey,
} from "../../../drizzle/schema/index.ts";
import { Conflict, InvalidInput } from "../../../platform/errors.ts";
import { literally } from "../../../platform/markdown.ts";
import { parseName } from "../../../platform/text.ts";
import { audit } from "../../audit.ts";
import { type Actor, requireAdmin } from "../../context.ts";
import { channelSlug } from "../../outbox/conversations.ts";
import type { AppContext } from "../../plugin/context.ts";
import { documentsCiting } from "../document/texts.ts";
import { redactedText } from "../timeline/entry.ts";
import { recordEvent } from "../timeline/event.ts";
import { recordCorrection } from "./amend.ts";
import { type Entry, isEntry, lockEvent, removeText } from "./entry.ts";
import { type EventIds, getEvent } from "./get.ts";
import type { Event } from "./list.ts";

export interface Redaction {
  event: Event;
  /** The conversation plugins that were sent the text, or are being sent it, by slug. */
  receivedBy: string[];
  /** The earlier texts of the incident that were removed. */
  removed: string[];
}

/** The long texts of an incident, whose earlier values are in `incident.updated`. */
const longTexts = ["description", "resolution"] as const;

/**
 * Removes a text from the database: of a note, a message, a report, or the earlier description or resolution of an
 * incident. Its earlier versions, its words in the search, what was sent of it and the stored answers of requests are
 * removed in the same transaction. The reason is visible on the timeline and in the audit log. Only admins may do so.
 *
 * @throws Forbidden before anything is looked up
 * @throws NotFound also for an event of another incident
 * @throws InvalidInput for an event that has no such text
 * @throws Conflict when it was redacted already
 */
export async function redactEvent(
  context: AppContext,
  actor: Actor,
  wanted: EventIds & { reason: string; address: string },
): Promise<Redaction> {
  const { db, clock } = context;
  const { incidentId, eventId, address } = wanted;
  requireAdmin(actor, "redact a text");
  const reason = parseName("reason", wanted.reason);
  return db.transaction(async (tx) => {
    const found = await lockEvent(tx, actor, wanted);
    if (found.redactedAt) throw new Conflict("This text was redacted already");
    const at = clock.now();
    await tx.update(event).set({ redactedAt: at }).where(eq(event.id, eventId));
    const removed = isEntry(found) ? [] : earlierTexts(found).map(({ from }) => from);
    const receivedBy = isEntry(found)
      ? await redactEntry(tx, context, actor, found, { at, reason })
      : await redactEarlierTexts(tx, actor, found, { at, reason });
    const data = { incident_id: incidentId, kind: found.kind, reason };
    const subject = String(eventId);
    await audit(tx, { at, actor: actor.user, action: "event.redacted", address, subject, data });
    return { event: await getEvent({ db: tx }, actor, wanted), receivedBy, removed };
  });
}

/**
 * The documents that may have the text of an event, before or after its redaction. This reads all versions of their texts, so
 * it is no part of that transaction, which holds the lock of the incident.
 *
 * @param wanted.removed what `redactEvent` has removed. Without it, nobody can find the words of a redacted description
 *   any more, and the documents that link to the event are returned
 * @throws Forbidden before anything is looked up
 * @throws NotFound also for an event of another incident
 */
export async function documentsWithText(
  { db }: Pick<AppContext, "db">,
  actor: Actor,
  wanted: EventIds & { removed?: string[] },
): Promise<{ id: number; name: string }[]> {
  requireAdmin(actor, "redact a text");
  const found = await getEvent({ db }, actor, wanted);
  const texts = wanted.removed ?? (found.redactedAt ? [] : earlierTexts(found).map(({ from }) => from));
  return documentsCiting(db, { ...wanted, texts });
}

async function redactEntry(
  tx: Transaction,
  context: AppContext,
  actor: Actor,
  entry: Entry,
  { at, reason }: { at: Date; reason: string },
): Promise<string[]> {
  await removeText(tx, entry, redactedText);
  await tx.delete(eventRevision).where(eq(eventRevision.eventId, entry.id));
  const gone = { description: redactedText };
  const answers = {
    note: { list: "events", id: entry.id, text: gone },
    "message.sent": { list: "messages", id: entry.data.message_id, text: { text: redactedText } },
    "report.written": {
      list: "reports",
      id: entry.data.report_id,
      text: { conditions: "", actions: "", needs: "" },
    },
  }[entry.kind];
  const body = sql`${idempotencyKey.responseBody}::jsonb`;
  await tx
    .update(idempotencyKey)
    .set({
      responseBody: sql`(${body} || ${JSON.stringify({ ...answers.text, redacted_at: at })}::jsonb)::text`,
    })
    .where(
      and(
        eq(idempotencyKey.method, "POST"),
        sql`${idempotencyKey.path} ~ ${`^/incidents/[^/]+/${answers.list}$`}`,
        sql`${body} ->> 'id' = ${String(answers.id)}`,
      ),
    );
  return await recordCorrection(tx, context, actor, entry, { at, action: "redacted", text: gone, reason });
}

/** The texts that a change of an incident has replaced. */
function earlierTexts({ kind, data }: Pick<Event, "kind" | "data">) {
  return longTexts.flatMap((field) => {
    const { from } = Object(kind === "incident.updated" ? data[field] : undefined) as { from?: unknown };
    return typeof from === "string" && from !== "" ? [{ field, from }] : [];
  });
}

/** Whether a change of an incident has a text that can be redacted. */
export const hasEarlierText = (event: Pick<Event, "kind" | "data" | "redactedAt">) =>
  !event.redactedAt && earlierTexts(event).length > 0;

/** Redacts what a change of an incident has replaced. */
async function redactEarlierTexts(
  tx: Transaction,
  actor: Actor,
  found: Awaited<ReturnType<typeof lockEvent>>,
  { at, reason }: { at: Date; reason: string },
): Promise<string[]> {
  const { id, incidentId, kind, version, data } = found;
  const earlier = earlierTexts(found);
  if (earlier.length === 0) throw new InvalidInput("event_id", "This event has no text that can be redacted");
  const gone = Object.fromEntries(earlier.map(({ field }) => [field, { from: redactedText }]));
  await tx
    .update(event)
    .set({ data: { ...data, ...gone }, version: version + 1, editedAt: at, editedBy: actor.user })
    .where(eq(event.id, id));
  const received = new Set<string>();
  for (const { field, from } of earlier) {
    const body = sql`${idempotencyKey.responseBody}::jsonb`;
    await tx
      .update(idempotencyKey)
      .set({ responseBody: sql`jsonb_set(${body}, ${`{${field}}`}, to_jsonb(${redactedText}::text))::text` })
      .where(
        and(
          sql`${idempotencyKey.path} ~ '^/incidents(/|$)'`,
          sql`${body} ->> ${field}::text = ${from}::text`,
        ),
      );
    for (const slug of await redactChanges(tx, incidentId, from)) received.add(slug);
  }
  // Every call of a conversation plugin has the description.
  if (earlier.some(({ field }) => field === "description"))
    for (const { slug } of await tx
      .select({ slug: conversation.pluginSlug })
      .from(conversation)
      .where(and(eq(conversation.incidentId, incidentId), ne(conversation.pluginSlug, channelSlug))))
      received.add(slug);
  await recordEvent(tx, {
    incidentId,
    at,
    actor: actor.user,
    kind: "redacted",
    description: `Earlier ${earlier.map(({ field }) => field).join(" and ")} redacted: ${reason}`,
    data: { target_id: id, target_kind: kind, reason },
  });
  return [...received].sort();
}

/**
 * Removes an earlier text of an incident from the messages that announced it, and from errors of plugins, which get the
 * description with each call.
 *
 * @returns the plugins that were sent such a message
 */
async function redactChanges(tx: Transaction, incidentId: number, from: string): Promise<string[]> {
  const text = literally(from);
  const { key, pluginSlug, state, leaseUntil } = delivery;
  const announces = and(
    eq(delivery.incidentId, incidentId),
    eq(delivery.task, "incident-change"),
    sql`strpos(${delivery.text}, ${text}) > 0`,
  );
  // First, because it may wait until one is split, which adds others.
  await tx.select({ key }).from(delivery).where(announces).orderBy(asc(key)).for("update");
  const changed = await tx
    .update(delivery)
    .set({ text: without(delivery.text, text) })
    .where(announces)
    .returning({ slug: pluginSlug, state, leaseUntil });
  const has = (column: PgColumn) => sql`strpos(${column}, ${from}) > 0`;
  await tx
    .update(delivery)
    .set({ error: without(delivery.error, from) })
    .where(and(eq(delivery.incidentId, incidentId), has(delivery.error)));
  await tx
    .update(flowStep)
    .set({ error: without(flowStep.error, from) })
    .where(and(eq(flowStep.incidentId, incidentId), has(flowStep.error)));
  await tx
    .update(event)
    .set({ description: without(event.description, from) })
    .where(and(eq(event.incidentId, incidentId), eq(event.kind, "step.failed"), has(event.description)));
  const channel = tx
    .select({ id: conversation.id })
    .from(conversation)
    .where(eq(conversation.incidentId, incidentId));
  await tx
    .update(conversationMessage)
    .set({ text: without(conversationMessage.text, text) })
    .where(
      and(
        inArray(conversationMessage.conversationId, channel),
        sql`starts_with(${conversationMessage.deliveryKey}, 'incident-change/')`,
        sql`strpos(${conversationMessage.text}, ${text}) > 0`,
      ),
    );
  return changed
    .filter(({ state, leaseUntil }) => state === "Done" || leaseUntil !== null)
    .map(({ slug }) => slug);
}

const without = (column: PgColumn, text: string) => sql`replace(${column}, ${text}, ${redactedText})`;
