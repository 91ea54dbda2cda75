import { and, gte, inArray, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { delivery, deliveryStates } from "../../drizzle/schema/index.ts";
import { keyOf, type Outgoing } from "./deliver.ts";

/** Which people have been written to already, and whether by this message. */
export interface Written {
  people: ReadonlySet<number>;
  has(outgoing: Pick<Outgoing, "key">): boolean;
}

/** What a task has enqueued for these people since then, of what begins so. */
export async function writtenSince(
  tx: Transaction,
  since: Date,
  { task, what }: Pick<Outgoing["key"], "task" | "what">,
  people: readonly number[],
): Promise<Written> {
  const rows = await tx
    .select({ key: delivery.key, id: delivery.individualId })
    .from(delivery)
    .where(
      and(
        // All of them, as the index has it: what is new is found beside years of what was sent to these people.
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
