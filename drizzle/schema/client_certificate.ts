import { bigint, index, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { authorityKey } from "./authority.ts";
import { id } from "./columns.ts";
import { token } from "./token.ts";
import { instant } from "./types.ts";

/**
 * A certificate of ours that authenticates a user over mutual TLS. It belongs to a row of `token`, of which no token was
 * ever signed: that has the user, the groups, the end of the sign-in beyond which no renewal goes, and the revocation,
 * which ends a certificate with all its renewals.
 */
export const clientCertificate = pgTable(
  "client_certificate",
  {
    id: id(),
    /** SHA-256 of the DER encoding in base64url, as in `x5t#S256` (RFC 8705). */
    sha256: text("sha256").notNull().unique(),
    /** Lower-case hexadecimal. */
    serial: text("serial").notNull().unique(),
    jti: uuid("jti")
      .notNull()
      .references(() => token.jti, { onDelete: "cascade" }),
    authorityKeyId: bigint("authority_key_id", { mode: "number" })
      .notNull()
      .references(() => authorityKey.id),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
  },
  (table) => [
    index("client_certificate_jti_idx").on(table.jti),
    index("client_certificate_key_idx").on(table.authorityKeyId),
    index("client_certificate_created_at_idx").on(table.createdAt, table.id),
    index("client_certificate_expires_at_idx").on(table.expiresAt),
  ],
);
