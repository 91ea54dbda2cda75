import { bigint, index, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

/** Who did what, append-only. `data` names records by id; it never holds a secret. */
export const auditLog = pgTable(
  "audit_log",
  {
    id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    at: instant("at").notNull(),
    /** A user name, or `client` for a terminal that nobody has vouched for yet. */
    actor: text("actor").notNull(),
    action: text("action").notNull(),
    address: text("address"),
    subject: text("subject"),
    data: jsonb("data").$type<Record<string, unknown>>().notNull().default({}),
  },
  (table) => [index("audit_log_at_idx").on(table.at), index("audit_log_subject_idx").on(table.subject)],
);
