import { sql } from "drizzle-orm";
import { check, index, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { issuerSessionId, session } from "./session.ts";
import { bytes, instant } from "./types.ts";

/**
 * A terminal's request to be signed in (docs/protocol.md). The challenge token itself is never stored, only its SHA-256; pages,
 * events and other tables refer to the challenge by `id`.
 *
 * The state is derived from the times: collected, denied, expired (`expires_at` has passed), approved, pending.
 */
export const challenge = pgTable(
  "challenge",
  {
    id: uuid("id").primaryKey(),
    tokenHash: bytes("token_hash").notNull().unique(),
    /** Canonical: see core/auth/user/name.ts. */
    userName: text("user_name").notNull(),
    /** Shown by both terminal and page (RFC 8628, 5.4). */
    userCode: text("user_code").notNull(),
    /** base64url SHA-256 of the client's verifier (RFC 7636); null for a legacy client. */
    codeChallenge: text("code_challenge"),
    requestAddress: text("request_address").notNull(),
    client: text("client").notNull(),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    /** The first browser session that opened the challenge; only that session may decide. */
    sessionHash: bytes("session_hash").references(() => session.idHash, {
      onDelete: "set null",
      onUpdate: "cascade",
    }),
    boundAt: instant("bound_at"),
    approvedAt: instant("approved_at"),
    deniedAt: instant("denied_at"),
    /** The user's groups at the time of approval, for the token. */
    groups: text("groups")
      .array()
      .notNull()
      .default(sql`'{}'`),
    /** The sign-in of the session that approved it. */
    issuerSessionId: issuerSessionId(),
    collectedAt: instant("collected_at"),
    /** The first poll without the right verifier, so that a flood of them causes a single audit event. */
    wrongVerifierAt: instant("wrong_verifier_at"),
  },
  (table) => [
    index("challenge_expires_at_idx").on(table.expiresAt),
    index("challenge_session_hash_idx").on(table.sessionHash),
    index("challenge_issuer_session_idx").on(table.issuerSessionId),
    check("challenge_one_decision", sql`approved_at is null or denied_at is null`),
    check("challenge_approved_by_a_browser", sql`approved_at is null or bound_at is not null`),
    check("challenge_collected_after_approval", sql`collected_at is null or approved_at is not null`),
  ],
);
