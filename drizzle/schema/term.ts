import { sql } from "drizzle-orm";
import { boolean, check, index, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id, idOf } from "./columns.ts";
import { instant, searchVector } from "./types.ts";

/** A word or phrase that is looked for in documents and descriptions. */
export const term = pgTable(
  "term",
  {
    id: id(),
    text: text("text").notNull(),
    /** Whether it is looked for; a word that is everywhere only makes noise. */
    discoverable: boolean("discoverable").notNull().default(true),
    /** Where term-sync found it, and under which id; both null for one that a person wrote. */
    source: text("source"),
    externalId: text("external_id"),
    /** A tombstone: it vanished from its source. It comes back under the same id, with its definitions. */
    deletedAt: instant("deleted_at"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("term_external_id_idx").on(table.source, table.externalId),
    uniqueIndex("term_own_text_idx")
      .on(table.text)
      .where(sql`source is null and deleted_at is null`),
    index("term_text_idx").on(table.text, table.id),
    index("term_search_idx").using("gin", table.search),
    check("term_source_with_id", sql`(source is null) = (external_id is null)`),
  ],
);

/** What terms mean: one definition may serve several, and a term may have several. */
export const definition = pgTable(
  "definition",
  {
    id: id(),
    text: text("text").notNull(),
    /** As a term's, without a tombstone: nothing but its terms refers to it, so it is simply deleted. */
    source: text("source"),
    externalId: text("external_id"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("definition_external_id_idx").on(table.source, table.externalId),
    index("definition_search_idx").using("gin", table.search),
    check("definition_source_with_id", sql`(source is null) = (external_id is null)`),
  ],
);

export const definitionTerm = pgTable(
  "definition_term",
  {
    definitionId: idOf("definition_id")
      .notNull()
      .references(() => definition.id, { onDelete: "cascade" }),
    termId: idOf("term_id")
      .notNull()
      .references(() => term.id, { onDelete: "restrict" }),
  },
  (table) => [
    primaryKey({ name: "definition_term_pk", columns: [table.definitionId, table.termId] }),
    index("definition_term_term_idx").on(table.termId),
  ],
);
