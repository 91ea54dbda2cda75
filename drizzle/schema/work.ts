import { integer, text } from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

/**
 * The columns of tables whose rows are durable work (core/outbox/work.ts), in addition to their `state`. Claims, leases
 * and backoff use only these.
 */
export const workColumns = {
  /** The number of attempts, including the current one; reset to 0 when a person requests another. */
  attempts: integer("attempts").notNull().default(0),
  /** While it is being processed; afterwards another process may claim it. */
  leaseUntil: instant("lease_until"),
  /** The time of the next attempt; null: only when a person requests it. */
  dueAt: instant("due_at"),
  finishedAt: instant("finished_at"),
  /** Why the last attempt failed, for people; never a secret or a message from a library. */
  error: text("error"),
};
