import { sql } from "drizzle-orm";
import { index, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { challenge } from "./challenge.ts";
import { issuerSessionId } from "./session.ts";
import { bytes, instant } from "./types.ts";

/** An issued access token: its claims, never the token. */
export const token = pgTable(
  "token",
  {
    jti: uuid("jti").primaryKey(),
    challengeId: uuid("challenge_id")
      .unique()
      .references(() => challenge.id, { onDelete: "set null" }),
    userName: text("user_name").notNull(),
    groups: text("groups")
      .array()
      .notNull()
      .default(sql`'{}'`),
    issuedAt: instant("issued_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    revokedAt: instant("revoked_at"),
    /**
     * The client certificate that an access token is bound to, or the one of an organisation that the row stands for: SHA-256 in
     * base64url, as in `x5t#S256` (RFC 8705).
     */
    certificateSha256: text("certificate_sha256"),
    issuerSessionId: issuerSessionId(),
  },
  (table) => [
    index("token_certificate_idx")
      .on(table.certificateSha256)
      .where(sql`certificate_sha256 is not null`),
    index("token_expires_at_idx").on(table.expiresAt),
    index("token_issuer_session_idx").on(table.issuerSessionId),
    // For the newest token of a user, which has their current groups.
    index("token_user_idx").on(table.userName, table.issuedAt),
  ],
);

/** A key that signs access tokens. It verifies from its creation until `expires_at` and signs from `active_at` on. */
export const signingKey = pgTable("signing_key", {
  kid: text("kid").primaryKey(),
  algorithm: text("algorithm").notNull(),
  publicJwk: jsonb("public_jwk").$type<JsonWebKey>().notNull(),
  /** AES-256-GCM of the private JWK: 12 bytes nonce, ciphertext, 16 bytes tag; `kid` is the associated data. */
  privateKey: bytes("private_key").notNull(),
  createdAt: instant("created_at").notNull(),
  activeAt: instant("active_at").notNull(),
  expiresAt: instant("expires_at"),
});
