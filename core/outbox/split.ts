import { eq } from "drizzle-orm";
import type { Database } from "../../drizzle/client.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import type { Clock } from "../../platform/clock.ts";
import { enqueue } from "./job.ts";

/** Of rows that are written at once: a statement takes 65,535 values. */
const batch = 1000;

/**
 * Makes of a delivery to everyone one for each recipient, with attempts and an end of its own: so one whose mail the
 * server does not take now holds up no other, and nobody gets it twice because of them. All of it or nothing is written,
 * so a worker that dies before leaves the delivery as it was. One to nobody is done.
 *
 * @returns false when its job is no longer the delivery's
 */
export async function splitDelivery(
  { db, clock }: { db: Database; clock: Clock },
  jobId: string,
  recipients: readonly string[],
): Promise<boolean> {
  const at = clock.now();
  return await db.transaction(async (tx) => {
    const [split] = await tx
      .update(delivery)
      .set({
        state: recipients.length > 0 ? "Split" : "Done",
        jobId: null,
        dueAt: null,
        finishedAt: at,
        lastError: null,
      })
      .where(eq(delivery.jobId, jobId))
      .returning();
    if (!split) return false;
    const { key, task, incidentId, about, pluginSlug, subject, text } = split;
    const rows = [...new Set(recipients)].map((recipient) => ({
      ...{ key: `${key}/${encodeURIComponent(recipient)}`, task, incidentId, about, pluginSlug, recipient },
      ...{ subject, text, jobId: crypto.randomUUID(), queuedAt: at, dueAt: at },
    }));
    for (let from = 0; from < rows.length; from += batch) {
      const some = rows.slice(from, from + batch);
      await tx.insert(delivery).values(some);
      await enqueue(
        tx,
        some.map(({ jobId: id, key, pluginSlug, recipient }) => ({ id, key, pluginSlug, recipient })),
      );
    }
    return true;
  });
}
