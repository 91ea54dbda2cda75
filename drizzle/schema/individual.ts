import { sql } from "drizzle-orm";
import { boolean, check, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id } from "./columns.ts";
import { searchVector } from "./types.ts";

/** A person, identified with the user who signs in as `email`; a person need not ever sign in. */
export const individual = pgTable(
  "individual",
  {
    id: id(),
    name: text("name").notNull(),
    /** Canonical: see core/auth/user/name.ts. */
    email: text("email").notNull(),
    ...editable(),
    search: searchVector("search"),
    /**
     * Whether everyone can see them: they are in the catalog, or on call. Otherwise they are visible only to those who
     * may read something they take part in (core/incident/visibility/visibility.ts).
     */
    listed: boolean("listed").notNull().default(true),
    /** The IANA name of the zone in which the pages show times to them. Nobody else sees it. */
    timeZone: text("time_zone"),
  },
  (table) => [
    uniqueIndex("individual_email_idx").on(table.email),
    index("individual_name_idx").on(table.name, table.id),
    index("individual_search_idx").using("gin", table.search),
    // The part of the canonical form that the database can check, so that a write bypassing core cannot create a person
    // twice.
    check("individual_email_canonical", sql`email ~ '^[^A-Z[:space:]@]+@[^A-Z[:space:]@]+$'`),
  ],
);
