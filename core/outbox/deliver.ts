import {
  and,
  asc,
  eq,
  gt,
  gte,
  inArray,
  isNull,
  lte,
  ne,
  notExists,
  notInArray,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import { after, type Clock } from "../../platform/clock.ts";
import type { AppContext } from "../plugin/context.ts";
import type { Message } from "../plugin/facts.ts";
import { comingConversations, openConversations } from "./conversations.ts";
import { type Claim, dueNow, finishWork, holdingAttempts, type WorkKind } from "./work.ts";

// Vocabulary. A delivery is a row of the table `delivery`: a message to send, and its outcome. An attempt is one call
// of the plugin. A delivery is Dead when it is no longer retried; resending it resets its attempts. A delivery to
// everyone is Split if its plugin sends to each recipient separately: each recipient then has a delivery. A reminder or
// a summary is a statement about the present: it is written again when it is sent, and Obsolete if it is no longer true,
// or if a newer one says it. Other messages to everyone are sent in their order.

/** A delivery that this process has claimed, as it was at that time. */
export type DeliveryClaim = typeof delivery.$inferSelect & Claim;

/** Deliveries as a kind of durable work. */
export const deliveries: WorkKind<DeliveryClaim> = {
  table: delivery,
  isRow: ({ key }) => eq(delivery.key, key),
  states: { waiting: "Queued", running: "Queued", failed: "Queued", done: "Done", dead: "Dead" },
  // A plugin's error may repeat what it was sent, which may have been redacted meanwhile.
  reasonOf: ({ subject, text }, reason) => sql`case
    when ${delivery.subject} = ${subject} and ${delivery.text} = ${text} then ${reason} else ${changedReason} end`,
};

const changedReason = "It failed while its text was changed";

/** A message to be sent once. */
export interface Outgoing {
  /** Which task sends what to whom. A key that was enqueued once is never enqueued again. */
  key: { task: string; what: string; whom: string };
  /** The message is sent through this incident's conversations. */
  incidentId: number;
  /**
   * Every incident that it mentions, by default only `incidentId`. A message about several must not mention a
   * Restricted one.
   */
  about?: readonly number[];
  /** Only to this person. By default to everyone in the conversation. */
  individualId?: number;
  /** Only through this plugin. By default through each one with a conversation of the incident. */
  pluginSlug?: string;
  /** Not through these plugins, whose users know it already. */
  except?: readonly string[];
  /** Also through plugins whose conversation is not open yet, or not again: it is sent once it is. */
  awaitsOpening?: boolean;
  /**
   * For a statement about the present, what it is about: it replaces older ones that the plugin has not sent. The task is
   * part of it.
   */
  topic?: string;
  /** When it happened, or the period of a statement about the present began. By default now. */
  occurredAt?: Date;
  /** Its place in the conversation. By default after all others. */
  sequence?: number;
  message: Message;
}

export interface Delivered {
  /** Enqueued now or earlier. */
  reached: Outgoing[];
  /** Their incident has no open conversation of a selected plugin. Nothing was enqueued for them. */
  unreachable: Outgoing[];
}

/**
 * Enqueues messages in the transaction of their cause: one delivery for each plugin with a conversation of the
 * incident, so that a failing plugin does not hold up the others.
 */
export async function deliver(
  tx: Transaction,
  { clock, plugins }: Pick<AppContext, "clock" | "plugins">,
  outgoing: readonly Outgoing[],
): Promise<Delivered> {
  const open = await openConversations(tx, plugins, [...new Set(outgoing.map((one) => one.incidentId))]);
  const waiting = outgoing.filter((one) => one.awaitsOpening).map((one) => one.incidentId);
  const coming = await comingConversations(tx, plugins, [...new Set(waiting)]);
  const slugsOf = ({ incidentId, pluginSlug, individualId, except, awaitsOpening }: Outgoing) => [
    ...(open.get(incidentId) ?? [])
      .filter(({ slug }) => (pluginSlug === undefined || slug === pluginSlug) && !except?.includes(slug))
      .filter(({ staysPublic }) => individualId !== undefined || !staysPublic)
      .map(({ slug }) => slug),
    ...((awaitsOpening && coming.get(incidentId)) || []).filter(
      (slug) => (pluginSlug === undefined || slug === pluginSlug) && !except?.includes(slug),
    ),
  ];
  const reached = outgoing.filter((one) => slugsOf(one).length > 0);
  const unreachable = outgoing.filter((one) => slugsOf(one).length === 0);
  const at = clock.now();
  const rows = reached.flatMap((one) =>
    slugsOf(one).map((pluginSlug) => ({
      key: keyOf(one.key.task, one.key.what, one.key.whom, pluginSlug),
      task: one.key.task,
      incidentId: one.incidentId,
      pluginSlug,
      about: [...(one.about ?? [one.incidentId])],
      individualId: one.individualId ?? null,
      subject: one.message.subject,
      text: one.message.text,
      topic: one.topic === undefined ? null : keyOf(one.key.task, one.topic),
      ...(one.sequence !== undefined && { sequence: one.sequence }),
      queuedAt: at,
      occurredAt: one.occurredAt ?? null,
      dueAt: dueNow(at),
    })),
  );
  // In a fixed order, so that concurrent callers with the same keys cannot deadlock. Messages of a conversation keep
  // theirs, which numbers them: their callers hold the incident's lock.
  const [ordered, others] = [rows.filter(isInOrder), rows.filter((row) => !isInOrder(row))];
  const values = [...others.sort((a, b) => (a.key < b.key ? -1 : 1)), ...ordered];
  if (values.length > 0) {
    const written = await tx
      .insert(delivery)
      .values(values)
      .onConflictDoNothing({ target: delivery.key })
      .returning({ key: delivery.key });
    const keys = new Set(written.map(({ key }) => key));
    await replaceOlder(
      tx,
      at,
      values.filter(({ key, topic }) => topic !== null && keys.has(key)),
    );
  }
  return { reached, unreachable };
}

const isInOrder = (row: { individualId: number | null; topic: string | null }) =>
  row.individualId === null && row.topic === null;

/**
 * Drops older statements about the present that wait or are dead. The new one also covers their period. One that is being
 * sent is left alone: if that fails, its next attempt finds the new one.
 */
async function replaceOlder(
  tx: Transaction,
  at: Date,
  written: readonly Pick<DeliveryClaim, "key" | "topic" | "pluginSlug" | "occurredAt">[],
): Promise<void> {
  if (written.length === 0) return;
  const { key, topic, pluginSlug, occurredAt, leaseUntil, state } = delivery;
  const older = await tx
    .select({ key, topic, pluginSlug, occurredAt, leaseUntil })
    .from(delivery)
    .where(
      and(
        inArray(topic, [...new Set(written.flatMap((one) => one.topic ?? []))]),
        inArray(state, ["Queued", "Dead"]),
        notInArray(
          key,
          written.map((one) => one.key),
        ),
      ),
    )
    .orderBy(asc(key))
    .for("update");
  const idle: string[] = [];
  for (const one of written) {
    const before = older.filter((old) => old.topic === one.topic && old.pluginSlug === one.pluginSlug);
    idle.push(...before.filter((old) => !old.leaseUntil || old.leaseUntil <= at).map((old) => old.key));
    const [since] = before.flatMap((old) => old.occurredAt ?? []).sort((a, b) => a.getTime() - b.getTime());
    if (since && one.occurredAt && since < one.occurredAt)
      await tx.update(delivery).set({ occurredAt: since }).where(eq(key, one.key));
  }
  if (idle.length === 0) return;
  await tx
    .update(delivery)
    .set({ state: "Obsolete", leaseUntil: null, dueAt: null, finishedAt: at, error: replacedReason })
    .where(inArray(key, idle));
}

/** Begins the error of a delivery that a person gave up. */
export const discardedReason = "Discarded: ";

export const replacedReason = "A newer one has replaced it";

/** A message that the receiver wants later than this holds nothing back. */
const holdingSeconds = 120;

const earlier = alias(delivery, "earlier");
const later = alias(delivery, "later");

/** Messages of conversations that may hold back later ones, written like the index. */
const inOrderOf = ({ state, individualId, topic, attempts }: typeof delivery | typeof earlier) =>
  sql`${state} = 'Queued' and ${individualId} is null and ${topic} is null
    and ${attempts} <= ${sql.raw(String(holdingAttempts))}`;

export const inOrder = inOrderOf(delivery);

/**
 * Matches messages of a conversation that no earlier one holds back in the same plugin, and for the same recipient if they
 * go to single recipients. An earlier one holds them back until it is sent, or its third attempt has failed.
 */
export function isNotHeldBack(at: Date, toRecipient: boolean): SQL {
  const { attempts, leaseUntil, dueAt } = earlier;
  const time = sql`${at.toISOString()}::timestamptz`;
  const waits = and(sql`${attempts} < ${holdingAttempts}`, lte(dueAt, after(at, holdingSeconds)));
  const holding = and(
    inOrderOf(earlier),
    eq(earlier.pluginSlug, delivery.pluginSlug),
    eq(earlier.incidentId, delivery.incidentId),
    toRecipient ? eq(earlier.recipient, delivery.recipient) : isNull(earlier.recipient),
    sql`${earlier.sequence} < ${delivery.sequence}`,
    or(waits, sql`${leaseUntil} > ${time}`),
  );
  // A scalar subquery is never turned into a join, which would compare all waiting messages of a conversation with each
  // other: it reads the first entry of the index.
  return sql`(select true from ${delivery} as "earlier" where ${holding} order by ${earlier.recipient}, ${earlier.sequence} limit 1) is null`;
}

/**
 * Makes the messages due that failed while a receiver was down, because this one of their conversation, plugin and recipient
 * is sent again. Each gets one attempt that holds back later ones, so that they arrive in order. One that a later message
 * has already overtaken failed for a reason of its own: its pauses stay.
 */
export async function retryFailed(db: Database, claim: DeliveryClaim, at: Date): Promise<void> {
  if (!isInOrder(claim) || claim.sequence === null) return;
  const { key, state, attempts, leaseUntil, sequence } = delivery;
  const others = (table: typeof delivery | typeof later) =>
    and(
      eq(table.pluginSlug, claim.pluginSlug),
      eq(table.incidentId, claim.incidentId),
      claim.recipient === null ? isNull(table.recipient) : eq(table.recipient, claim.recipient),
      isNull(table.individualId),
      isNull(table.topic),
      ne(table.key, claim.key),
    );
  const overtaken = db
    .select({ key: later.key })
    .from(later)
    .where(and(others(later), eq(later.state, "Done"), gt(later.sequence, sequence)));
  const failed = db
    .select({ key })
    .from(delivery)
    .where(
      and(
        others(delivery),
        eq(state, "Queued"),
        gte(attempts, holdingAttempts),
        or(isNull(leaseUntil), lte(leaseUntil, at)),
        notExists(overtaken),
      ),
    )
    // Another worker may do the same.
    .for("update", { skipLocked: true });
  await db
    .update(delivery)
    .set({ dueAt: dueNow(at), attempts: holdingAttempts - 1 })
    .where(sql`${key} = any (array(${failed}))`);
}

/** Returns `task/what/whom/plugin`, or the prefix of several keys from the first of these parts. */
export function keyOf(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join("/");
}

/** How many rows are written at once: a statement takes 65,535 values. */
const batch = 1000;

/**
 * Splits a delivery to everyone into one for each recipient, with separate attempts and outcomes. So a recipient whose
 * mail is not accepted holds up nobody, and nobody gets the message twice. It writes everything or nothing, so if the
 * worker dies first, the delivery is unchanged. A delivery without recipients is done.
 *
 * @throws LeaseLost
 */
export async function splitDelivery(
  { db, clock }: { db: Database; clock: Clock },
  claim: DeliveryClaim,
  recipients: readonly string[],
): Promise<void> {
  const at = clock.now();
  const { key, task, incidentId, about, pluginSlug, topic, sequence } = claim;
  const occurredAt = claim.occurredAt ?? claim.queuedAt;
  const parts = [...new Set(recipients)].map((recipient) => ({
    key: `${key}/${encodeURIComponent(recipient)}`,
    task,
    incidentId,
    about,
    pluginSlug,
    recipient,
    topic,
    sequence,
    queuedAt: at,
    occurredAt,
    dueAt: dueNow(at),
  }));
  await db.transaction(async (tx) => {
    await finishWork(tx, deliveries, claim, at, { state: parts.length > 0 ? "Split" : "Done" });
    // It may have been corrected since it was claimed.
    const [current] = await tx
      .select({ subject: delivery.subject, text: delivery.text })
      .from(delivery)
      .where(eq(delivery.key, key));
    const rows = parts.map((part) => ({ ...part, ...current! }));
    for (let from = 0; from < rows.length; from += batch)
      await tx.insert(delivery).values(rows.slice(from, from + batch));
  });
}
