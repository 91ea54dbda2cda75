import { sql } from "drizzle-orm";
import { check, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id } from "./columns.ts";
import { instant, searchVector } from "./types.ts";

/** Software that incidents are about. */
export const application = pgTable(
  "application",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    uri: text("uri"),
    /** The source where application-sync found it, and its id there; both null for an application added by a person. */
    source: text("source"),
    externalId: text("external_id"),
    /** A tombstone: it disappeared from its source. */
    deletedAt: instant("deleted_at"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("application_external_id_idx").on(table.source, table.externalId),
    uniqueIndex("application_own_name_idx")
      .on(table.name)
      .where(sql`source is null and deleted_at is null`),
    index("application_name_idx").on(table.name, table.id),
    index("application_search_idx").using("gin", table.search),
    check("application_source_with_id", sql`(source is null) = (external_id is null)`),
  ],
);
