import { eq } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import type { Clock } from "../../platform/clock.ts";
import type { PluginContext } from "../plugin/context.ts";
import type { Message } from "../plugin/facts.ts";
import { comingConversations, openConversations } from "./conversations.ts";
import { type Claim, dueNow, finishWork, type WorkKind } from "./work.ts";

// Vocabulary. A delivery is a row of the table `delivery`: a message to send, and its outcome. An attempt is one call
// of the plugin. A delivery is Dead when it is no longer retried; resending it resets its attempts. A delivery to
// everyone is Split if its plugin sends to each recipient separately: each recipient then has a delivery.

/** A delivery that this process has claimed, as it was at that time. */
export type DeliveryClaim = typeof delivery.$inferSelect & Claim;

/** Deliveries as a kind of durable work. */
export const deliveries: WorkKind<DeliveryClaim> = {
  table: delivery,
  isRow: ({ key }) => eq(delivery.key, key),
  states: { waiting: "Queued", running: "Queued", failed: "Queued", done: "Done", dead: "Dead" },
};

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
  { clock, plugins }: Pick<PluginContext, "clock" | "plugins">,
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
    ...((awaitsOpening && coming.get(incidentId)) || []).filter((slug) => !except?.includes(slug)),
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
      queuedAt: at,
      dueAt: dueNow(at),
    })),
  );
  if (rows.length > 0) {
    // In a fixed order, so that concurrent callers with the same keys cannot deadlock.
    await tx
      .insert(delivery)
      .values(rows.sort((a, b) => (a.key < b.key ? -1 : 1)))
      .onConflictDoNothing({ target: delivery.key });
  }
  return { reached, unreachable };
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
  const { key, task, incidentId, about, pluginSlug, subject, text } = claim;
  const rows = [...new Set(recipients)].map((recipient) => ({
    key: `${key}/${encodeURIComponent(recipient)}`,
    task,
    incidentId,
    about,
    pluginSlug,
    recipient,
    subject,
    text,
    queuedAt: at,
    dueAt: dueNow(at),
  }));
  await db.transaction(async (tx) => {
    await finishWork(tx, deliveries, claim, at, rows.length > 0 ? "Split" : "Done");
    for (let from = 0; from < rows.length; from += batch)
      await tx.insert(delivery).values(rows.slice(from, from + batch));
  });
}
