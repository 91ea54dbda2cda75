import { sql } from "drizzle-orm";
import { check, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { id, idOf, isUnmarked, partOf, wordIndex } from "./columns.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { instant, searchVector } from "./types.ts";

/** Where an incident is discussed: one conversation per conversation plugin in use. */
export const conversation = pgTable(
  "conversation",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    pluginSlug: text("plugin_slug").notNull(),
    /** The plugin's id for it; null if our id suffices. */
    externalId: text("external_id"),
    weblink: text("weblink"),
    createdAt: instant("created_at").notNull(),
    archivedAt: instant("archived_at"),
  },
  (table) => [
    uniqueIndex("conversation_incident_idx").on(table.incidentId, table.pluginSlug),
    uniqueIndex("conversation_external_id_idx").on(table.pluginSlug, table.externalId),
  ],
);

/** A message in a conversation of the built-in plugin. */
export const conversationMessage = pgTable(
  "conversation_message",
  {
    id: id(),
    conversationId: partOf("conversation_id", () => conversation.id),
    at: instant("at").notNull(),
    /** Null: svc itself. */
    authorId: idOf("author_id").references(() => individual.id, { onDelete: "restrict" }),
    /** Visible only to this person; null: to everyone in the conversation. */
    recipientId: idOf("recipient_id").references(() => individual.id, { onDelete: "restrict" }),
    text: text("text").notNull(),
    /** The key of the delivery that brought it, so that a retry does not post it twice. */
    deliveryKey: text("delivery_key"),
    /** The conversation plugin that a person wrote it in, which does not receive it again; null: svc itself. */
    origin: text("origin"),
    search: searchVector("search"),
  },
  (table) => [
    index("conversation_message_conversation_idx").on(table.conversationId, table.at, table.id),
    index("conversation_message_author_idx").on(table.authorId),
    index("conversation_message_recipient_idx").on(table.recipientId),
    wordIndex("conversation_message_search_block_idx", table),
    wordIndex("conversation_message_search_open_idx", table).where(isUnmarked(table.search)),
    uniqueIndex("conversation_message_delivery_idx").on(table.conversationId, table.deliveryKey),
    check("conversation_message_says_something", sql`text <> ''`),
  ],
);
