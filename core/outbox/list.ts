import { asc, count, desc, inArray } from "drizzle-orm";
import { delivery, type deliveryStates } from "../../drizzle/schema/index.ts";
import type { Context } from "../context.ts";

/** Split is none that operators see: its parts are. */
export type DeliveryState = Exclude<(typeof deliveryStates)[number], "Split">;

/** A delivery as operators see it: without its words, which are for who may read the incident. */
export interface DeliveryView {
  key: string;
  state: (typeof deliveryStates)[number];
  incidentId: number;
  pluginSlug: string;
  /** Of everyone in the conversation, as the plugin calls them: an id, no address. */
  recipient: string | null;
  attempts: number;
  queuedAt: Date;
  dueAt: Date | null;
  finishedAt: Date | null;
  error: string | null;
}

const { key, state, incidentId, pluginSlug, recipient, attempts } = delivery;
const { queuedAt, dueAt, finishedAt, error } = delivery;
const columns = {
  ...{ key, state, incidentId, pluginSlug, recipient, attempts },
  ...{ queuedAt, dueAt, finishedAt, error },
};

/** The newest in these states. */
export async function listDeliveries(
  { db }: Pick<Context, "db">,
  { states, limit }: { states: readonly DeliveryState[]; limit: number },
): Promise<DeliveryView[]> {
  return db
    .select(columns)
    .from(delivery)
    .where(inArray(state, [...states]))
    .orderBy(desc(queuedAt), asc(key))
    .limit(limit);
}

/** How many there are in each state; one that was Split is no more than its parts. */
export async function countDeliveries({ db }: Pick<Context, "db">): Promise<Record<DeliveryState, number>> {
  const rows = await db.select({ state, n: count() }).from(delivery).groupBy(state);
  const of = (wanted: DeliveryState) => rows.find((row) => row.state === wanted)?.n ?? 0;
  return { Queued: of("Queued"), Done: of("Done"), Dead: of("Dead") };
}
