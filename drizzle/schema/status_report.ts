import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { id, isUnmarked, partOf, referenceTo, withinYears, wordIndex } from "./columns.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { instant, searchVector } from "./types.ts";

/** The state of an incident in three paragraphs. A correction replaces them (`event_revision`). */
export const statusReport = pgTable(
  "status_report",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    authorId: referenceTo("author_id", () => individual.id),
    conditions: text("conditions").notNull(),
    actions: text("actions").notNull(),
    needs: text("needs").notNull(),
    createdAt: instant("created_at").notNull(),
    search: searchVector("search"),
  },
  (table) => [
    index("status_report_incident_idx").on(table.incidentId, table.createdAt, table.id),
    index("status_report_author_idx").on(table.authorId),
    wordIndex("status_report_search_block_idx", table),
    wordIndex("status_report_search_open_idx", table).where(isUnmarked(table.search)),
    check("status_report_times", withinYears("created_at")),
  ],
);

/**
 * A status report reminder that was due at anchor + k · N hours: the process that inserts the row sends it. `anchor` is
 * the time of the last report or, without one, of the incident.
 */
export const statusReportReminder = pgTable(
  "status_report_reminder",
  {
    incidentId: partOf("incident_id", () => incident.id),
    anchor: instant("anchor").notNull(),
    k: integer("k").notNull(),
    remindedAt: instant("reminded_at").notNull(),
  },
  (table) => [
    primaryKey({ name: "status_report_reminder_pk", columns: [table.incidentId, table.anchor, table.k] }),
    check("status_report_reminder_k", sql`k > 0`),
    check("status_report_reminder_times", withinYears("reminded_at")),
  ],
);
