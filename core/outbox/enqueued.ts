import { and, gte, inArray, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { delivery, deliveryStates } from "../../drizzle/schema/index.ts";
import { keyOf, type Outgoing } from "./deliver.ts";

/** Who was already written to, and with which messages. */
export interface Enqueued {
  people: ReadonlySet<number>;
  has(outgoing: Pick<Outgoing, "key">): boolean;
}

/** Returns what a task has enqueued for these people since then, with keys that start with `what`. */
export async function enqueuedSince(
  tx: Transaction,
  since: Date,
  { task, what }: Pick<Outgoing["key"], "task" | "what">,
  people: readonly number[],
): Promise<Enqueued> {
  const rows = await tx
    .select({ key: delivery.key, id: delivery.individualId })
    .from(delivery)
    .where(
      and(
        // All states, as in the index, which finds new deliveries among years of old ones.
        inArray(delivery.state, [...deliveryStates]),
        gte(delivery.queuedAt, since),
        inArray(delivery.individualId, [...people]),
        sql`starts_with(${delivery.key}, ${keyOf(task, what)})`,
      ),
    );
  const keys = new Set(rows.map(({ key }) => key.slice(0, key.lastIndexOf("/"))));
  return {
    people: new Set(rows.flatMap(({ id }) => id ?? [])),
    has: ({ key }) => keys.has(keyOf(key.task, key.what, key.whom)),
  };
}
