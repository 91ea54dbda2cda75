import { eq } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import type { Clock } from "../../platform/clock.ts";
import type { PluginContext } from "../plugin/context.ts";
import type { Message } from "../plugin/facts.ts";
import { comingConversations, openConversations } from "./reach.ts";
import { type Claim, dueNow, finishWork, type WorkKind } from "./work.ts";

// Vocabulary. A delivery is a row of the table `delivery`: what is to be sent, and what became of it. An attempt is one
// call of the plugin. A delivery is Dead when nobody tries it any more; whoever re-sends it gives it its attempts again.
// One to everyone is Split when its plugin sends to each recipient by itself: it has become a delivery for each of them.

/** A delivery that this process has claimed, as it was then. */
export type DeliveryClaim = typeof delivery.$inferSelect & Claim;

/** Deliveries as a kind of durable work. */
export const deliveries: WorkKind<DeliveryClaim> = {
  table: delivery,
  isRow: ({ key }) => eq(delivery.key, key),
  states: { waiting: "Queued", running: "Queued", failed: "Queued", done: "Done", dead: "Dead" },
};

/** Something that is to be said, once. */
export interface Outgoing {
  /** Which task says what to whom: what was enqueued under a key once is never enqueued again. */
  key: { task: string; what: string; whom: string };
  /** The message goes by the conversations of this incident. */
  incidentId: number;
  /** Every incident that it tells of; this one alone unless told. What is of several may not be of a Restricted one. */
  about?: readonly number[];
  /** To this person alone; without one, to everyone in the conversation. */
  individualId?: number;
  /** By this plugin alone; without one, by each by which the incident is talked about. */
  pluginSlug?: string;
  /** By these plugins not: where it is known already. */
  except?: readonly string[];
  /** Also by plugins that have yet to open their conversation: it is sent when they have. */
  awaitsOpening?: boolean;
  message: Message;
}

export interface Delivered {
  /** Of these, something is enqueued or was before. */
  reached: Outgoing[];
  /** Their incident has no open conversation by a plugin that is chosen; nothing was done about them. */
  unreachable: Outgoing[];
}

/**
 * Enqueues what leaves the database, in the transaction of what it tells of: one delivery for each plugin by which the
 * incident is talked about, so that one which fails holds up no other.
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
      ...{
        key: keyOf(one.key.task, one.key.what, one.key.whom, pluginSlug),
        task: one.key.task,
        incidentId: one.incidentId,
        pluginSlug,
      },
      ...{ about: [...(one.about ?? [one.incidentId])], individualId: one.individualId ?? null },
      ...{ subject: one.message.subject, text: one.message.text },
      ...{ queuedAt: at, dueAt: dueNow(clock) },
    })),
  );
  if (rows.length > 0) {
    // In one order, so that two that enqueue the same do not wait for each other in a circle.
    await tx
      .insert(delivery)
      .values(rows.sort((a, b) => (a.key < b.key ? -1 : 1)))
      .onConflictDoNothing({ target: delivery.key });
  }
  return { reached, unreachable };
}

/** `task/what/whom/plugin`, or what several keys begin with: the first of these. */
export function keyOf(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join("/");
}

/** Of rows that are written at once: a statement takes 65,535 values. */
const batch = 1000;

/**
 * Makes of a delivery to everyone one for each recipient, with attempts and an end of its own: so one whose mail the
 * server does not take now holds up no other, and nobody gets it twice because of them. All of it or nothing is written,
 * so a worker that dies before leaves the delivery as it was. One to nobody is done.
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
    ...{ key: `${key}/${encodeURIComponent(recipient)}`, task, incidentId, about, pluginSlug, recipient },
    ...{ subject, text, queuedAt: at, dueAt: dueNow(clock) },
  }));
  await db.transaction(async (tx) => {
    await finishWork(tx, deliveries, claim, at, rows.length > 0 ? "Split" : "Done");
    for (let from = 0; from < rows.length; from += batch)
      await tx.insert(delivery).values(rows.slice(from, from + batch));
  });
}
