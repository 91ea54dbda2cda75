import { sql } from "drizzle-orm";
import { index, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { bytes, instant } from "./types.ts";

/**
 * A sign-in at the OpenID Connect issuer. Everything that comes from it refers to it: the browser session, the challenges
 * that are approved there, their tokens, and the certificates that these begin. The issuer can end it.
 */
export const issuerSession = pgTable(
  "issuer_session",
  {
    id: uuid("id").primaryKey(),
    userName: text("user_name").notNull(),
    /** The claims `iss`, `sub` and, if the issuer sends it, `sid` of the ID token. */
    issuer: text("issuer").notNull(),
    subject: text("subject").notNull(),
    sid: text("sid"),
    createdAt: instant("created_at").notNull(),
    endedAt: instant("ended_at"),
    /** The issuer's, sealed, if it gave one; `id` is the name. */
    refreshToken: bytes("refresh_token"),
    /** When the issuer last confirmed the sign-in, and until when it is not asked: another server does, or it is down. */
    refreshedAt: instant("refreshed_at"),
    refreshUntil: instant("refresh_until"),
  },
  (table) => [
    index("issuer_session_subject_idx").on(table.subject, table.issuer),
    index("issuer_session_sid_idx").on(table.sid),
  ],
);

/** A column of what comes from a sign-in at the issuer; null behind a proxy that signs people in. */
export const issuerSessionId = () =>
  uuid("issuer_session_id").references(() => issuerSession.id, { onDelete: "set null" });

/**
 * A browser session. The cookie contains a random id of which only the SHA-256 is stored. `user_name` is null until
 * single sign-on has succeeded.
 */
export const session = pgTable(
  "session",
  {
    idHash: bytes("id_hash").primaryKey(),
    userName: text("user_name"),
    groups: text("groups")
      .array()
      .notNull()
      .default(sql`'{}'`),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    signedInAt: instant("signed_in_at"),
    issuerSessionId: issuerSessionId(),
  },
  (table) => [
    index("session_expires_at_idx").on(table.expiresAt),
    index("session_issuer_session_idx").on(table.issuerSessionId),
  ],
);

/** One attempt at single sign-on: the values that the issuer must return unchanged (OpenID Connect Core 3.1.2). */
export const signIn = pgTable(
  "sign_in",
  {
    stateHash: bytes("state_hash").primaryKey(),
    sessionHash: bytes("session_hash")
      .notNull()
      .references(() => session.idHash, { onDelete: "cascade", onUpdate: "cascade" }),
    nonce: text("nonce").notNull(),
    pkceVerifier: text("pkce_verifier").notNull(),
    /** Where the browser is sent afterwards: one of our own paths, set by us. */
    returnTo: text("return_to").notNull(),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
  },
  (table) => [
    index("sign_in_session_hash_idx").on(table.sessionHash),
    index("sign_in_expires_at_idx").on(table.expiresAt),
  ],
);
