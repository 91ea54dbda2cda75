import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { blockOf, editable, id, idOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { bytes, instant, searchVector } from "./types.ts";

/**
 * A document: an incident's own (`incident_id`), or one that incidents may be shown (runbooks, templates). Its text is
 * with the plugin `plugin_slug` under `resource_id`; without a plugin it is a link and nothing is read from it.
 */
export const document = pgTable(
  "document",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** What it is for, e.g. `incident`, `review`, `reference`. Plugins may bring others. */
    resourceType: text("resource_type").notNull(),
    pluginSlug: text("plugin_slug"),
    resourceId: text("resource_id"),
    weblink: text("weblink"),
    incidentId: idOf("incident_id").references(() => incident.id, { onDelete: "restrict" }),
    /** Where incident-task-sync goes on: the plugin's word for what it has told us. Null: it starts over. */
    taskCursor: text("task_cursor"),
    taskSyncedAt: instant("task_synced_at"),
    /** SHA-256 of the text as last seen, and of the text whose terms are linked: equal when there is nothing to do. */
    contentHash: bytes("content_hash"),
    termContentHash: bytes("term_content_hash"),
    /** The vocabulary that those terms are of: what document-term-sync makes of all terms together. */
    termVocabulary: text("term_vocabulary"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("document_resource_id_idx").on(table.pluginSlug, table.resourceId),
    // Lists go by id, one of the filters in front.
    index("document_incident_idx").on(table.incidentId, table.id),
    index("document_resource_type_idx").on(table.resourceType, table.id),
    index("document_name_idx").on(table.name, table.id),
    // What a plugin proposes by its link. A hash, for a link may be longer than what any other index takes.
    index("document_weblink_idx").using("hash", table.weblink),
    index("document_search_block_idx").using("gin", table.search, blockOf(table.id)),
    // document-term-sync: read for the first time, or changed since.
    index("document_term_due_idx")
      .on(table.id)
      .where(
        sql`plugin_slug is not null and (term_content_hash is null or term_content_hash <> content_hash)`,
      ),
    check("document_resource_id_of_a_plugin", sql`resource_id is null or plugin_slug is not null`),
  ],
);

/** The text of a document of the built-in document plugin. Apart, so that a list of documents reads none of it. */
export const documentContent = pgTable(
  "document_content",
  {
    documentId: idOf("document_id")
      .primaryKey()
      .references(() => document.id, { onDelete: "cascade" }),
    /** Markdown. */
    content: text("content").notNull(),
    /** SHA-256 of `content` in UTF-8. */
    hash: bytes("hash").notNull(),
    /** Counted up by each change of the text: what a PUT must name, and the plugin's cursor. */
    version: integer("version").notNull().default(1),
    updatedAt: instant("updated_at").notNull(),
  },
  () => [check("document_content_hash_is_sha256", sql`octet_length(hash) = 32`)],
);
