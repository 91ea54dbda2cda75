import { sql } from "drizzle-orm";
import { boolean, check, index, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id, partOf, referenceTo } from "./columns.ts";
import { instant, searchVector } from "./types.ts";

/** A word or phrase to find in documents and descriptions. */
export const term = pgTable(
  "term",
  {
    id: id(),
    text: text("text").notNull(),
    /** Whether to look for it; a very common word only produces noise. */
    discoverable: boolean("discoverable").notNull().default(true),
    /** The source where term-sync found it, and its id there; both null for a term added by a person. */
    source: text("source"),
    externalId: text("external_id"),
    /**
     * A tombstone: it disappeared from its source. If it reappears with the same id, it is restored with its
     * definitions.
     */
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

/** The meaning of terms: a definition may belong to several terms, and a term may have several. */
export const definition = pgTable(
  "definition",
  {
    id: id(),
    text: text("text").notNull(),
    /** As for a term, but without a tombstone: only its terms refer to it, so it is simply deleted. */
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
    definitionId: partOf("definition_id", () => definition.id),
    termId: referenceTo("term_id", () => term.id),
  },
  (table) => [
    primaryKey({ name: "definition_term_pk", columns: [table.definitionId, table.termId] }),
    index("definition_term_term_idx").on(table.termId),
  ],
);
