import { sql } from "drizzle-orm";
import { index, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { blockOf, id, partOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { instant, searchVector } from "./types.ts";

/**
 * The timeline of an incident: append-only, each event in the transaction of the change it reports. It is deleted with
 * its incident; `audit_log` records who deleted that.
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
    /** The words of a note. Other events have none. */
    search: searchVector("search"),
  },
  (table) => [
    index("event_incident_idx").on(table.incidentId, table.at, table.id),
    index("event_search_block_idx")
      .using("gin", table.search, blockOf(table.id))
      .where(sql`kind = 'note'`),
  ],
);
