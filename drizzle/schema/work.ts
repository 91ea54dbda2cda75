import { integer, text } from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

/**
 * What each table has whose rows are durable work (core/outbox/work.ts), beside its `state`. Claims, leases and backoff
 * read and write these and nothing else.
 */
export const workColumns = {
  /** How often it was begun, the attempt that is under way included; 0 again when a person asks for it. */
  attempts: integer("attempts").notNull().default(0),
  /** While somebody does it: afterwards somebody else may take it over. */
  leaseUntil: instant("lease_until"),
  /** When it may be begun (again); null: when a person asks for it. */
  dueAt: instant("due_at"),
  finishedAt: instant("finished_at"),
  /** Why the last attempt failed, in words for people; never a secret or a message from a library. */
  error: text("error"),
};
