import type { Database } from "../../drizzle/client.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import type { Clock } from "../../platform/clock.ts";
import { type DeliveryClaim, deliveries } from "./deliver.ts";
import { dueNow, finishWork } from "./work.ts";

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
