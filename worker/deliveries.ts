import { and, eq, isNotNull, isNull } from "drizzle-orm";
import { type AttemptContext, attemptDelivery } from "../core/incident/delivery/attempt.ts";
import { type DeliveryClaim, deliveries } from "../core/outbox/deliver.ts";
import { claimWork, isDue } from "../core/outbox/work.ts";
import { delivery } from "../drizzle/schema/index.ts";
import type { WorkerDeps } from "./deps.ts";
import { Outage } from "./outage.ts";
import { processQueues, type QueueTimes } from "./queues.ts";

type DeliveryDeps = Pick<WorkerDeps, "db" | "time" | "config" | "log" | "plugins" | "observed" | "outage">;

/**
 * Deliveries are limited per queue: one for each plugin, split by messages to everyone and to single recipients. So a
 * message to a conversation does not wait behind hundreds of mails.
 */
interface Queue {
  pluginSlug: string;
  toRecipient: boolean;
}

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
  const attempt = async (claim: DeliveryClaim, over: AbortSignal) => {
    const work = () => attemptDelivery(context(), claim, over);
    try {
      await (observed ? observed.delivery(work) : work());
    } catch (err) {
      // The lease will expire, and another worker will take over.
      log.warn({ err, delivery: claim.key }, "could not record the outcome of a delivery");
    }
  };
  await processQueues<Queue, DeliveryClaim>(
    {
      due: () => dueQueues(context()),
      atOnce: 3,
      attempt,
      nameOf: ({ pluginSlug, toRecipient }) => `${pluginSlug} ${toRecipient}`,
      claim: (queue, limit) => claim(context(), queue, limit),
    },
    outage,
    stop,
    times,
  );
}

async function dueQueues({ db, clock }: AttemptContext): Promise<Queue[]> {
  return await db
    .selectDistinct({
      pluginSlug: delivery.pluginSlug,
      toRecipient: isNotNull(delivery.recipient).mapWith(Boolean),
    })
    .from(delivery)
    .where(and(eq(delivery.state, "Queued"), isDue(delivery, clock.now())));
}

async function claim(
  context: AttemptContext,
  { pluginSlug, toRecipient }: Queue,
  limit: number,
): Promise<DeliveryClaim[]> {
  const among = and(
    eq(delivery.state, "Queued"),
    eq(delivery.pluginSlug, pluginSlug),
    toRecipient ? isNotNull(delivery.recipient) : isNull(delivery.recipient),
  );
  return await claimWork(context, deliveries, { among, order: [delivery.dueAt, delivery.key], limit });
}
