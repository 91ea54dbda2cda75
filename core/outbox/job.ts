import { sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";

// Vocabulary. A delivery is a row of the table `delivery`: what is to be sent, and what became of it. Its job is
// pg-boss's and says when a worker tries it; a delivery that is Queued has exactly one. An attempt is one call of the
// plugin. A delivery is Dead when nobody tries it any more; whoever re-sends it gives it a new job. One to everyone is
// Split when its plugin sends to each recipient by itself: it has become a delivery for each of them.

/** The queues are made by revisions, as the schema of pg-boss is. */
export const deliveryQueue = "delivery";
/**
 * Of deliveries to one recipient of a conversation. Workers of the release that knew none do not look here: they would
 * send them to everyone.
 */
export const recipientQueue = "delivery-recipient";
/** Jobs that took their worker down each time they were tried. */
export const deadQueue = "delivery-dead";

/** What each of our instances of pg-boss has in common: the schema is brought by a revision, the schedule is our own. */
export const bossOptions = {
  schema: "pgboss",
  migrate: false,
  createSchema: false,
  schedule: false,
} as const;

/** What pg-boss tells as an error: sometimes a copy of one, without its class. */
export function bossError(told: unknown): Error {
  if (told instanceof Error) return told;
  const { message, code } = Object(told) as { message?: unknown; code?: unknown };
  return Object.assign(new Error(String(message)), typeof code === "string" ? { code } : {});
}

export interface Job {
  id: string;
  /** The delivery's, for whoever reads the table. */
  key: string;
  pluginSlug: string;
  recipient: string | null;
  dueAt?: Date;
}

/** Enqueues jobs in this very transaction, by an instance of pg-boss that lives no longer than this. */
export async function enqueue(tx: Transaction, jobs: readonly Job[]): Promise<void> {
  if (jobs.length === 0) return;
  // A server that sends nothing does without.
  const { fromDrizzle, PgBoss } = await import("pg-boss");
  const boss = new PgBoss({ ...bossOptions, db: fromDrizzle(tx, sql), supervise: false });
  const faults: Error[] = [];
  boss.on("error", (error) => void faults.push(bossError(error)));
  await boss.start();
  try {
    for (const [queue, of] of Map.groupBy(jobs, queueOf))
      await boss.insert(
        queue,
        of.map(({ id, key, pluginSlug, dueAt }) => ({
          ...{ id, data: { key }, group: { id: pluginSlug } },
          ...(dueAt && { startAfter: dueAt }),
        })),
      );
  } finally {
    await boss.stop({ graceful: false, close: false });
  }
  if (faults[0]) throw faults[0];
}

function queueOf({ recipient }: Job): string {
  return recipient === null ? deliveryQueue : recipientQueue;
}
