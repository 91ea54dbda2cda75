import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id, idOf, oneOf } from "./columns.ts";
import { service } from "./service.ts";
import { searchVector } from "./types.ts";

/**
 * Open: readable by every member. Restricted: only by its participants and admins, in every list, search, summary and
 * stream.
 */
export const visibilities = ["Open", "Restricted"] as const;

export const incidentType = pgTable(
  "incident_type",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** The visibility of a new incident of this type, unless its reporter chooses one. */
    visibility: text("visibility", { enum: visibilities }).notNull().default("Open"),
    /** The person on call for this service becomes commander; without a service, the reporter does. */
    commanderServiceId: idOf("commander_service_id").references(() => service.id, { onDelete: "restrict" }),
    /** Whether somebody owes a post-mortem when an incident of this type is closed. */
    postmortem: boolean("postmortem").notNull().default(false),
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
    /** Higher is more urgent; sorting by name would be meaningless. */
    rank: integer("rank").notNull().default(0),
    /** Hours between two status report reminders. */
    reminderHours: integer("reminder_hours").notNull(),
    /** The reporter becomes commander and no one is called. Set for Info, so that the code need not know that name. */
    reporterCommands: boolean("reporter_commands").notNull().default(false),
    ...editable(),
  },
  (table) => [
    uniqueIndex("incident_priority_name_idx").on(table.name),
    check("incident_priority_reminds", sql`reminder_hours > 0`),
  ],
);
