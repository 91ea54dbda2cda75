import { sql } from "drizzle-orm";
import { boolean, check, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id } from "./columns.ts";
import { searchVector } from "./types.ts";

/** A person. The one who signs in under `email` is this person; nobody needs to sign in to be one. */
export const individual = pgTable(
  "individual",
  {
    id: id(),
    name: text("name").notNull(),
    /** Canonical: see core/auth/user/name.ts. */
    email: text("email").notNull(),
    /**
     * Whether everybody sees them: entered in the catalog, or on call. Otherwise they are known by what they have a part in,
     * and shown to those who may read some of that (core/incident/visibility/visibility.ts).
     */
    listed: boolean("listed").notNull().default(true),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("individual_email_idx").on(table.email),
    index("individual_name_idx").on(table.name, table.id),
    index("individual_search_idx").using("gin", table.search),
    // What the database can tell of canonical, so that one who writes past core cannot make two of one person.
    check("individual_email_canonical", sql`email ~ '^[^A-Z[:space:]@]+@[^A-Z[:space:]@]+$'`),
  ],
);
