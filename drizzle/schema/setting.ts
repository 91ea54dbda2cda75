import { pgTable, text } from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

/**
 * A setting that all processes must agree on, with the value of the latest process that started with a different one.
 */
export const setting = pgTable("setting", {
  /** The name of the variable. */
  name: text("name").primaryKey(),
  /** Null if it was not set. Never a secret. */
  value: text("value"),
  /** The process that recorded it, for people, e.g. `the server on host-1 (pid 17)`. */
  recordedBy: text("recorded_by").notNull(),
  recordedAt: instant("recorded_at").notNull(),
});
