import { and, eq, gt, isNotNull, isNull, or, sql } from "drizzle-orm";
import { type AttemptContext, attemptDelivery } from "../core/incident/delivery/attempt.ts";
import { type DeliveryClaim, deliveries, inOrder, isNotHeldBack } from "../core/outbox/deliver.ts";
import { claimWork, isDue } from "../core/outbox/work.ts";
import { delivery } from "../drizzle/schema/index.ts";
import type { WorkerDeps } from "./deps.ts";
import { Outage } from "./outage.ts";
import { processQueues, type QueueTimes } from "./queues.ts";

type DeliveryDeps = Pick<WorkerDeps, "db" | "time" | "config" | "log" | "plugins" | "observed" | "outage">;

/**
 * Deliveries are limited per queue. Each plugin has three, so that a reminder or a direct message does not wait behind a
 * busy conversation, nor a conversation behind hundreds of mails.
 */
interface Queue {
  pluginSlug: string;
  to: "person" | "conversation" | "recipient";
}

const { recipient, individualId, topic } = delivery;

/** Direct messages, reminders and summaries are sent in any order, those of a conversation in theirs. */
const queueOf = sql<Queue["to"]>`case when ${recipient} is not null then 'recipient'
  when ${individualId} is null and ${topic} is null then 'conversation' else 'person' end`;

/** Sends due deliveries from the outbox until `stop` aborts. */
export async function sendDeliveries(
  deps: DeliveryDeps,
  stop: AbortSignal,
  times: QueueTimes = {},
): Promise<void> {
  const { log, outage = new Outage(log), observed } = deps;
  const context = (): AttemptContext => {
    const { db, time: clock, config, plugins } = deps;
    return { db: db(), clock, config, log, plugins };
  };
  const attemptOne = async (claim: DeliveryClaim, over: AbortSignal) => {
    const work = () => attemptDelivery(context(), claim, over);
    return await (observed ? observed.delivery(work) : work());
  };
  const attempt = async (claim: DeliveryClaim, over: AbortSignal) => {
    let one = claim;
    try {
      for (let left = mostInRow - 1; ; left -= 1) {
        const outcome = await attemptOne(one, over);
        if (left === 0 || stop.aborted || (outcome !== "done" && outcome !== "dead")) return;
        const next = await claimNext(context(), one);
        if (!next) return;
        one = next;
      }
    } catch (err) {
      // The lease will expire, and another worker will claim it.
      log.warn({ err, delivery: one.key }, "could not record the outcome of a delivery");
    }
  };
  await processQueues<Queue, DeliveryClaim>(
    {
      due: () => dueQueues(context()),
      atOnce: 3,
      attempt,
      nameOf: ({ pluginSlug, to }) => `${pluginSlug} ${to}`,
      claim: (queue, limit) => claim(context(), queue, limit),
    },
    outage,
    stop,
    times,
  );
}

/** How many messages of a conversation are sent one after the other before others of its plugin get their turn. */
const mostInRow = 20;

/**
 * Claims the message that follows this one in its conversation. `claim` would find it, too, but looks at each message that
 * waits: with 1,000 of a conversation, each claim would take as long as several attempts.
 */
async function claimNext(
  context: AttemptContext,
  { pluginSlug, incidentId, recipient: to, individualId: person, topic: about, sequence }: DeliveryClaim,
): Promise<DeliveryClaim | undefined> {
  if (person !== null || about !== null || sequence === null) return undefined;
  const among = and(
    inOrder,
    eq(delivery.pluginSlug, pluginSlug),
    eq(delivery.incidentId, incidentId),
    to === null ? isNull(recipient) : eq(recipient, to),
    gt(delivery.sequence, sequence),
    isNotHeldBack(context.clock.now(), to !== null),
  );
  const order = [recipient, delivery.sequence];
  const [next] = await claimWork(context, deliveries, { among, order, limit: 1 });
  return next;
}

async function dueQueues({ db, clock }: AttemptContext): Promise<Queue[]> {
  return await db
    .selectDistinct({ pluginSlug: delivery.pluginSlug, to: queueOf })
    .from(delivery)
    .where(and(eq(delivery.state, "Queued"), isDue(delivery, clock.now())));
}

async function claim(
  context: AttemptContext,
  { pluginSlug, to }: Queue,
  limit: number,
): Promise<DeliveryClaim[]> {
  const isNext = isNotHeldBack(context.clock.now(), to === "recipient");
  const among = and(
    eq(delivery.state, "Queued"),
    eq(delivery.pluginSlug, pluginSlug),
    {
      person: and(isNull(recipient), or(isNotNull(individualId), isNotNull(topic))),
      conversation: and(isNull(recipient), isNull(individualId), isNull(topic), isNext),
      recipient: and(isNotNull(recipient), or(isNotNull(topic), isNext)),
    }[to],
  );
  return await claimWork(context, deliveries, { among, order: [delivery.dueAt, delivery.sequence], limit });
}
