import { index, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { id, idOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { instant } from "./types.ts";

/**
 * The timeline of an incident: append-only, each event in the transaction of what it tells of. It goes with its
 * incident, of which `audit_log` keeps who deleted it.
 */
export const event = pgTable(
  "event",
  {
    id: id(),
    incidentId: idOf("incident_id")
      .notNull()
      .references(() => incident.id, { onDelete: "cascade" }),
    at: instant("at").notNull(),
    /** A user name, `worker` or `system`, as in `audit_log`. */
    actor: text("actor").notNull(),
    /** The part that tells of it: `core`, a scheduled task, the slug of a plugin. */
    source: text("source").notNull(),
    /** What happened, for programs, e.g. `incident.stable`. */
    kind: text("kind").notNull(),
    /** What happened, for people. */
    description: text("description").notNull(),
    /** Names records by id; never a secret. */
    data: jsonb("data").$type<Record<string, unknown>>().notNull().default({}),
  },
  (table) => [index("event_incident_idx").on(table.incidentId, table.at, table.id)],
);
