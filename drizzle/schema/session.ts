import { sql } from "drizzle-orm";
import { index, pgTable, text } from "drizzle-orm/pg-core";
import { bytes, instant } from "./types.ts";

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
  },
  (table) => [index("session_expires_at_idx").on(table.expiresAt)],
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
