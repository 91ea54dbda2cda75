import { and, eq, isNotNull, isNull } from "drizzle-orm";
import { type AttemptContext, attemptDelivery } from "../core/incident/delivery/attempt.ts";
import { type DeliveryClaim, deliveries } from "../core/outbox/deliver.ts";
import { claimWork, isDue } from "../core/outbox/work.ts";
import { delivery } from "../drizzle/schema/index.ts";
import type { WorkerDeps } from "./deps.ts";
import { Outage } from "./outage.ts";
import { pause } from "./time.ts";

type DeliveryDeps = Pick<WorkerDeps, "db" | "time" | "config" | "log" | "plugins" | "observed" | "outage">;

/** What a worker tries at once of one plugin to conversations, and as much to single recipients. */
const atOnce = 3;
const pollSeconds = 2;
/** After a stop, for plugins that are being called; what is left, another worker does. */
const graceMilliseconds = 20_000;

/**
 * Deliveries that share what is tried at once: of one plugin, so that one which hangs leaves room for the others; and to
 * everyone or to single recipients, so that a message is not behind hundreds of mails that came before it.
 */
interface Lane {
  pluginSlug: string;
  toRecipient: boolean;
  running: number;
  /** Claims are being asked for, or should be asked for again. */
  filling: boolean;
  again: boolean;
}

/** Sends what is due in the outbox until `stop` aborts. Any number of workers may share it. */
export async function sendDeliveries(
  deps: DeliveryDeps,
  stop: AbortSignal,
  { poll = pollSeconds, grace = graceMilliseconds }: { poll?: number; grace?: number } = {},
): Promise<void> {
  const { log, outage = new Outage(log) } = deps;
  const lanes = new Map<string, Lane>();
  const running = new Set<Promise<void>>();
  const over = new AbortController();
  const context = (): AttemptContext => {
    const { db, time: clock, config, plugins } = deps;
    return { db: db(), clock, config, log, plugins };
  };
  const attempt = async (lane: Lane, claim: DeliveryClaim) => {
    const work = () => attemptDelivery(context(), claim, over.signal);
    try {
      await (deps.observed ? deps.observed.delivery(work) : work());
    } catch (err) {
      // Its lease ends by itself, and somebody takes it over.
      log.warn({ err, delivery: claim.key }, "it could not be noted what came of a delivery");
    }
    lane.running -= 1;
    if (lane.again) await fill(lane);
  };
  /** Begins what is due, as much as there is room for. */
  const fill = async (lane: Lane) => {
    lane.again = true;
    if (lane.filling) return;
    lane.filling = true;
    while (lane.again && lane.running < atOnce && !stop.aborted) {
      const limit = atOnce - lane.running;
      const claims = await outage.outlast(() => claim(context(), lane, limit), stop);
      // There may be hundreds: whoever has done one looks for the next without a pause.
      lane.again = claims?.length === limit;
      for (const one of claims ?? []) {
        lane.running += 1;
        const end: Promise<void> = attempt(lane, one).finally(() => running.delete(end));
        running.add(end);
      }
    }
    lane.filling = false;
  };
  while (!stop.aborted) {
    for (const { pluginSlug, toRecipient } of (await outage.outlast(() => dueLanes(context()), stop)) ?? []) {
      const name = `${pluginSlug} ${toRecipient}`;
      const lane = lanes.get(name) ?? { pluginSlug, toRecipient, running: 0, filling: false, again: false };
      lanes.set(name, lane);
      void fill(lane);
    }
    await pause(poll * 1000, stop);
  }
  await Promise.race([allOf(running), pause(grace, over.signal)]);
  // Plugins are no longer waited for, and what they had is given back.
  over.abort();
  await allOf(running);
}

async function allOf(running: ReadonlySet<Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.all(running);
}

async function dueLanes({ db, clock }: AttemptContext) {
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
  { pluginSlug, toRecipient }: Lane,
  limit: number,
): Promise<DeliveryClaim[]> {
  const among = and(
    eq(delivery.state, "Queued"),
    eq(delivery.pluginSlug, pluginSlug),
    toRecipient ? isNotNull(delivery.recipient) : isNull(delivery.recipient),
  );
  return await claimWork(context, deliveries, { among, order: [delivery.dueAt, delivery.key], limit });
}
