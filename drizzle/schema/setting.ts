import { pgTable, text } from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

/** A setting on which all processes have to agree, with the value of the one that was the latest to start with another. */
export const setting = pgTable("setting", {
  /** The variable. */
  name: text("name").primaryKey(),
  /** Null where it was not set. Never a secret. */
  value: text("value"),
  /** The process that recorded it, for people, e.g. `the server on host-1 (pid 17)`. */
  recordedBy: text("recorded_by").notNull(),
  recordedAt: instant("recorded_at").notNull(),
});
