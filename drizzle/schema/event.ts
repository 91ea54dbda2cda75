import { type SQL, sql } from "drizzle-orm";
import { index, integer, jsonb, type PgColumn, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { id, isUnmarked, partOf, wordIndex } from "./columns.ts";
import { incident } from "./incident.ts";
import { instant, searchVector } from "./types.ts";

/** The id of the report or the message that an event is about, as text. */
export const textIdOf = (data: PgColumn): SQL =>
  sql`(coalesce(${data} ->> 'report_id', ${data} ->> 'message_id'))`;

/** What a person wrote: a note or a message, or the parts of a report. */
export type EntryText = { description: string } | { conditions: string; actions: string; needs: string };

/**
 * The timeline of an incident: append-only, each event in the transaction of the change it reports. Only the texts of
 * people change: a correction replaces the text of a note, a report or a message, and is an event of its own. The timeline
 * is deleted with its incident; `audit_log` records who deleted that.
 */
export const event = pgTable(
  "event",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    at: instant("at").notNull(),
    /** A user name, `worker` or `system`, as in `audit_log`. */
    actor: text("actor").notNull(),
    /** Where it comes from: `core`, a scheduled task, or the slug of a plugin. */
    source: text("source").notNull(),
    /** What happened, for programs, e.g. `incident.stable`. */
    kind: text("kind").notNull(),
    /** What happened, for people. */
    description: text("description").notNull(),
    /** Refers to records by id; never contains a secret. */
    data: jsonb("data").$type<Record<string, unknown>>().notNull().default({}),
    /** Increases with each correction of what a person said, wherever its text is stored. */
    version: integer("version").notNull().default(1),
    /** The last correction, withdrawal or redaction, and who made it. */
    editedAt: instant("edited_at"),
    editedBy: text("edited_by"),
    withdrawnAt: instant("withdrawn_at"),
    redactedAt: instant("redacted_at"),
    /** The words of a note. Other events have none. */
    search: searchVector("search"),
  },
  (table) => [
    index("event_incident_idx").on(table.incidentId, table.at, table.id),
    // Finds the event of a report or a message.
    index("event_text_idx")
      .on(table.kind, textIdOf(table.data))
      .where(sql`kind in ('report.written', 'message.sent')`),
    wordIndex("event_search_block_idx", table).where(sql`kind = 'note'`),
    wordIndex("event_search_open_idx", table).where(sql`kind = 'note' and ${isUnmarked(table.search)}`),
  ],
);

/** Earlier texts of a note, a report or a message, which only admins may read. */
export const eventRevision = pgTable(
  "event_revision",
  {
    eventId: partOf("event_id", () => event.id),
    /** The version of the event that had this text. */
    version: integer("version").notNull(),
    text: jsonb("text").$type<EntryText>().notNull(),
    /** Who wrote this text, by user name, and when. */
    author: text("author").notNull(),
    at: instant("at").notNull(),
  },
  (table) => [primaryKey({ name: "event_revision_pk", columns: [table.eventId, table.version] })],
);
