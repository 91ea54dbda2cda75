import { sql } from "drizzle-orm";
import { check, index, pgTable, text } from "drizzle-orm/pg-core";
import { id, oneOf } from "./columns.ts";
import { bytes, instant } from "./types.ts";

export const authorityKinds = ["ssh", "x509"] as const;

/**
 * A key of one of our certificate authorities. It is trusted from its creation until `expires_at`, and signs from
 * `active_at` until a newer key of the same authority does.
 */
export const authorityKey = pgTable(
  "authority_key",
  {
    id: id(),
    kind: text("kind", { enum: authorityKinds }).notNull(),
    /** The authority's name: a host may trust one authority and not another. */
    name: text("name").notNull(),
    /** SSH: a line as in a `.pub` file; X.509: the certificate, PEM. */
    public: text("public").notNull(),
    /** PKCS #8 (PEM), sealed with SVC_KEY_SECRET (platform/sealed.ts). */
    privateKey: bytes("private_key").notNull(),
    createdAt: instant("created_at").notNull(),
    activeAt: instant("active_at").notNull(),
    /** Null: no newer key follows yet. */
    expiresAt: instant("expires_at"),
    /** The key may have leaked: nothing signed by it is trusted. */
    revokedAt: instant("revoked_at"),
  },
  (table) => [
    index("authority_key_name_idx").on(table.kind, table.name),
    check("authority_key_kind_known", oneOf("kind", authorityKinds)),
    check("authority_key_revoked", sql`revoked_at is null or expires_at is not null`),
  ],
);
