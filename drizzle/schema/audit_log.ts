import { bigint, index, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

/** Who did what, append-only. `data` refers to records by id; it never contains a secret. */
export const auditLog = pgTable(
  "audit_log",
  {
    id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    at: instant("at").notNull(),
    /** A user name, or `client` for a terminal without an authenticated user. */
    actor: text("actor").notNull(),
    action: text("action").notNull(),
    address: text("address"),
    subject: text("subject"),
    data: jsonb("data").$type<Record<string, unknown>>().notNull().default({}),
  },
  (table) => [index("audit_log_at_idx").on(table.at), index("audit_log_subject_idx").on(table.subject)],
);
