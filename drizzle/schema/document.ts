import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id, idOf, isUnmarked, partOf, wordIndex } from "./columns.ts";
import { incident } from "./incident.ts";
import { bytes, instant, searchVector } from "./types.ts";

/** A post-mortem whose text was written since its tasks were last read: the cursor of a text that was read is a number. */
export const hasNewText = (of?: string) => {
  const column = (name: string) => sql.raw(of === undefined ? name : `${of}.${name}`);
  return sql`${column("resource_type")} = 'review' and ${column("plugin_slug")} = 'markdown'
    and ${column("incident_id")} is not null and coalesce(${column("task_cursor")}, '') !~ '^[0-9]'`;
};

/**
 * A document: one of an incident (`incident_id`), or a shared one to show with incidents (runbooks, templates). Its
 * text is stored by the plugin `plugin_slug` under `resource_id`; without a plugin, it is only a link and its text is
 * never read.
 */
export const document = pgTable(
  "document",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** Its purpose, e.g. `incident`, `review`, `reference`. Plugins may add others. */
    resourceType: text("resource_type").notNull(),
    pluginSlug: text("plugin_slug"),
    resourceId: text("resource_id"),
    weblink: text("weblink"),
    incidentId: idOf("incident_id").references(() => incident.id, { onDelete: "restrict" }),
    /**
     * Where incident-task-sync resumes: a cursor chosen by the plugin. Null: it starts over, as it does with the words that a
     * change of a text in `document_content` writes.
     */
    taskCursor: text("task_cursor"),
    taskSyncedAt: instant("task_synced_at"),
    /** SHA-256 of the text as last seen, and of the text whose terms are linked; equal if there is nothing to do. */
    contentHash: bytes("content_hash"),
    termContentHash: bytes("term_content_hash"),
    /** The vocabulary of those terms: a digest that document-term-sync computes over all terms. */
    termVocabulary: text("term_vocabulary"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("document_resource_id_idx").on(table.pluginSlug, table.resourceId),
    // Lists are sorted by id, with one of the filters first.
    index("document_incident_idx").on(table.incidentId, table.id),
    index("document_resource_type_idx").on(table.resourceType, table.id),
    index("document_name_idx").on(table.name, table.id),
    // For a plugin that looks up documents by link. A hash index, as a link may be too long for any other index.
    index("document_weblink_idx").using("hash", table.weblink),
    wordIndex("document_search_block_idx", table),
    wordIndex("document_search_open_idx", table).where(isUnmarked(table.search)),
    // For document-term-sync: texts that are new, or changed since they were last read.
    index("document_term_due_idx")
      .on(table.id)
      .where(
        sql`plugin_slug is not null and (term_content_hash is null or term_content_hash <> content_hash)`,
      ),
    // For incident-task-sync.
    index("document_review_due_idx").on(table.id).where(hasNewText()),
    check("document_resource_id_of_a_plugin", sql`resource_id is null or plugin_slug is not null`),
  ],
);

/** The text of a document of the built-in document plugin. Separate, so that listing documents does not read it. */
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
    /** Incremented by each change of the text: a PUT must name it, and it is the plugin's cursor. */
    version: integer("version").notNull().default(1),
    updatedAt: instant("updated_at").notNull(),
  },
  () => [check("document_content_hash_is_sha256", sql`octet_length(hash) = 32`)],
);

/**
 * The versions of such a text, written in the transaction of each change. The text of the current version is only in
 * `document_content`: most texts never change.
 */
export const documentVersion = pgTable(
  "document_version",
  {
    documentId: partOf("document_id", () => document.id),
    version: integer("version").notNull(),
    /** Null as long as it is the current version. */
    content: text("content"),
    /** A user name, `worker` or `system`; null if it was written by a release that kept no versions. */
    author: text("author"),
    at: instant("at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.documentId, table.version] })],
);
