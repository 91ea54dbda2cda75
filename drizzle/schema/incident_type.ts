import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id, idOf, oneOf } from "./columns.ts";
import { service } from "./service.ts";
import { searchVector } from "./types.ts";

/** Open: every member reads it. Restricted: its participants and admins, in every list, search, summary and stream. */
export const visibilities = ["Open", "Restricted"] as const;

export const incidentType = pgTable(
  "incident_type",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** What an incident of this type starts with when its reporter does not say. */
    visibility: text("visibility", { enum: visibilities }).notNull().default("Open"),
    /** Who is on call there commands; without one, the reporter does. */
    commanderServiceId: idOf("commander_service_id").references(() => service.id, { onDelete: "restrict" }),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("incident_type_name_idx").on(table.name),
    index("incident_type_commander_service_idx").on(table.commanderServiceId),
    index("incident_type_search_idx").using("gin", table.search),
    check("incident_type_visibility_known", oneOf("visibility", visibilities)),
  ],
);

export const incidentPriority = pgTable(
  "incident_priority",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** Higher is more urgent. Names do not sort. */
    rank: integer("rank").notNull().default(0),
    /** Hours between two reminders to write a status report. */
    reminderHours: integer("reminder_hours").notNull(),
    /** The reporter commands and nobody is called: what Info says of itself, without its name being known to code. */
    reporterCommands: boolean("reporter_commands").notNull().default(false),
    ...editable(),
  },
  (table) => [
    uniqueIndex("incident_priority_name_idx").on(table.name),
    check("incident_priority_reminds", sql`reminder_hours > 0`),
  ],
);
