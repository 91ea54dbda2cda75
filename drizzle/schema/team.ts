import { sql } from "drizzle-orm";
import { check, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id } from "./columns.ts";
import { searchVector } from "./types.ts";

/** A group of people who are contacted together through a mailing list, which determines its members. */
export const team = pgTable(
  "team",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** Canonical, like an individual's; null for a team that only appears in documents. */
    email: text("email"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("team_name_idx").on(table.name),
    index("team_search_idx").using("gin", table.search),
    check("team_email_canonical", sql`email ~ '^[^A-Z[:space:]@]+@[^A-Z[:space:]@]+$'`),
  ],
);
