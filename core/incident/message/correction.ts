import { and, asc, eq, inArray, or, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import {
  conversation,
  conversationMessage,
  delivery,
  type EntryText,
} from "../../../drizzle/schema/index.ts";
import { minuteText } from "../../../platform/duration.ts";
import { channelSlug } from "../../outbox/conversations.ts";
import { deliver, discardedReason, keyOf } from "../../outbox/deliver.ts";
import { namingTime } from "../../outbox/late.ts";
import type { Message } from "../../plugin/facts.ts";
import type { EntryKind } from "../timeline/entry.ts";
import { type AnnounceContext, aboutOf, entryKey, isHeard, nameOf, type Subject } from "./announce.ts";
import { type Correction, correctionMessage, entryMessage } from "./messages.ts";

// A correction of an entry reaches its messages wherever they are. The channel's copy is replaced. A delivery that waits
// gets the new text, or is dropped if there is none. Plugins that have sent the message edit or withdraw it; for those
// that cannot, a message says what has changed. It follows the message in the order of the conversation.

/** The tasks of a delivery that calls `edit` or `withdraw`, and of a message that says what has changed. */
export const editTask = "incident-edit";
export const withdrawTask = "incident-withdraw";
const correctionTask = "incident-correction";

export interface CorrectedEntry {
  incident: Subject;
  kind: EntryKind;
  /** The id of the note, the report or the message. */
  id: number;
  /** The new version. */
  version: number;
  /** User names. */
  author: string;
  by: string;
  /** When what it says happened, and when it was written. */
  at: Date;
  writtenAt: Date;
  action: Correction["action"];
  /** The new text, or the word that stands for it. */
  text: EntryText;
}

/** The key with which the plugin got the message that a delivery edits or withdraws. */
export function correctedKey(key: string): string {
  const [, what = "", ...rest] = key.split("/");
  const original = decodeURIComponent(what);
  return [original.slice(0, original.lastIndexOf("/")), ...rest].join("/");
}

/**
 * Corrects what was sent of an entry. The incident must be locked.
 *
 * @returns the plugins that already have the earlier text
 */
export async function announceCorrection(
  tx: Transaction,
  context: AnnounceContext,
  entry: CorrectedEntry,
): Promise<string[]> {
  const { incident, kind, version, action, text, at: occurredAt, writtenAt: now } = entry;
  const { timezone } = context.config;
  const about = aboutOf(context, incident);
  const author = await nameOf(tx, entry.author);
  const who = entry.by === entry.author ? author : await nameOf(tx, entry.by);
  const { task, what } = entryKey(kind, entry.id);
  const prefix = keyOf(task, what);
  const message = entryMessage(about, { kind, author, text });
  const timed = namingTime(message, { occurredAt, now, timezone });
  await correctChannel(tx, incident.id, prefix, timed);
  const slugs = await correctDeliveries(tx, context, { incidentId: incident.id, prefix, message, action });
  const time = minuteText(occurredAt, timezone);
  const says = correctionMessage(about, { kind, author, who, time, action, text });
  const outgoing = slugs.flatMap((pluginSlug) => {
    const methods = context.plugins.find("conversation", pluginSlug)?.methods;
    const calls = action === "corrected" ? methods?.edit && editTask : methods?.withdraw && withdrawTask;
    const key = { task: calls || correctionTask, what: `${prefix}/version-${version}`, whom: "conversation" };
    const sent = calls === editTask ? timed : says;
    return { key, incidentId: incident.id, pluginSlug, awaitsOpening: true, message: sent };
  });
  if (outgoing.length > 0 && isHeard(context.plugins)) await deliver(tx, context, outgoing);
  return slugs;
}

/** Replaces what svc wrote into the channel. A message of a person is itself in the channel. */
async function correctChannel(
  tx: Transaction,
  incidentId: number,
  key: string,
  { subject, text }: Message,
): Promise<void> {
  const channel = tx
    .select({ id: conversation.id })
    .from(conversation)
    .where(and(eq(conversation.incidentId, incidentId), eq(conversation.pluginSlug, channelSlug)));
  await tx
    .update(conversationMessage)
    .set({ text: `${subject}\n\n${text}` })
    .where(
      and(inArray(conversationMessage.conversationId, channel), eq(conversationMessage.deliveryKey, key)),
    );
}

/** Matches the deliveries of a message, and of its earlier corrections. */
function deliveriesOf(incidentId: number, prefix: string) {
  const { key } = delivery;
  return and(
    eq(delivery.incidentId, incidentId),
    or(
      sql`starts_with(${key}, ${`${prefix}/`})`,
      sql`strpos(${key}, ${`/${encodeURIComponent(`${prefix}/`)}`}) > 0`,
    ),
  );
}

/** @returns the plugins that have sent the message, or are sending it */
async function correctDeliveries(
  tx: Transaction,
  { clock }: AnnounceContext,
  {
    incidentId,
    prefix,
    message,
    action,
  }: { incidentId: number; prefix: string; message: Message; action: Correction["action"] },
): Promise<string[]> {
  const { key, pluginSlug, state, leaseUntil, error } = delivery;
  const lock = () =>
    tx
      .select({ key, pluginSlug, state, leaseUntil, error })
      .from(delivery)
      .where(deliveriesOf(incidentId, prefix))
      .orderBy(asc(key))
      .for("update");
  // Twice: the first may wait until one has been split, which adds others.
  await lock();
  const rows = await lock();
  const at = clock.now();
  const isOriginal = (row: (typeof rows)[number]) => row.key.startsWith(`${prefix}/`);
  const isBeingSent = (row: (typeof rows)[number]) => row.leaseUntil !== null && row.leaseUntil > at;
  const idle = rows.filter((row) => row.state === "Dead" || (row.state === "Queued" && !isBeingSent(row)));
  // An earlier correction that waits says what is no longer true.
  const dropped = idle.filter((row) => action !== "corrected" || !isOriginal(row)).map((row) => row.key);
  if (dropped.length > 0)
    await tx
      .update(delivery)
      .set({
        state: "Obsolete",
        leaseUntil: null,
        dueAt: null,
        finishedAt: at,
        error: `The text was ${action}`,
      })
      .where(inArray(key, dropped));
  // One that is being sent may be sent again. A redacted text is also removed from those that were sent or dropped.
  const waiting =
    action === "redacted"
      ? rows
      : rows.filter((row) => ["Queued", "Dead"].includes(row.state) && !dropped.includes(row.key));
  if (waiting.length > 0)
    await tx
      .update(delivery)
      // A plugin's error may repeat what it was sent.
      .set({
        ...message,
        ...(action === "redacted" && {
          error: sql`case when ${error} is not null then 'The text was redacted' end`,
        }),
      })
      .where(
        inArray(
          key,
          waiting.map((row) => row.key),
        ),
      );
  const sent = rows.filter(
    (row) => isBeingSent(row) || (row.state === "Done" && !row.error?.startsWith(discardedReason)),
  );
  return [...new Set(sent.map((row) => row.pluginSlug))].sort();
}
