import { sql } from "drizzle-orm";
import { check, index, jsonb, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";
import { oneOf } from "./columns.ts";
import { bytes, instant } from "./types.ts";

const idempotencyStates = ["Running", "Done"] as const;

/**
 * A write with an `Idempotency-Key`: for 24 h the same request by the same actor is done once and gets the same
 * response. The same key with another request (`request_hash`) is refused.
 */
export const idempotencyKey = pgTable(
  "idempotency_key",
  {
    /** Canonical user name, so that no one gets another user's response. */
    actor: text("actor").notNull(),
    method: text("method").notNull(),
    path: text("path").notNull(),
    key: text("key").notNull(),
    /** SHA-256 of the body and everything else that determines the request's effect. */
    requestHash: bytes("request_hash").notNull(),
    state: text("state", { enum: idempotencyStates }).notNull().default("Running"),
    /** Only while Running: after it, the server is considered dead, and a retry may start over. */
    leaseUntil: instant("lease_until"),
    responseStatus: smallint("response_status"),
    responseHeaders: jsonb("response_headers").$type<Record<string, string>>(),
    /** As sent; null if there was none. */
    responseBody: text("response_body"),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
  },
  (table) => [
    primaryKey({ name: "idempotency_key_pk", columns: [table.actor, table.key, table.method, table.path] }),
    index("idempotency_key_expires_at_idx").on(table.expiresAt),
    check("idempotency_key_state_known", oneOf("state", idempotencyStates)),
    check("idempotency_key_lease_of_state", sql`(state = 'Running') = (lease_until is not null)`),
    check("idempotency_key_answer_of_state", sql`(state = 'Done') = (response_status is not null)`),
  ],
);
