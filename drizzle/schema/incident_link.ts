import { sql } from "drizzle-orm";
import { check, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { id, oneOf, partOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { instant } from "./types.ts";

export const incidentLinkKinds = ["related", "duplicate"] as const;

/** Two incidents that belong together: related ones, or one (`incident_id`) that duplicates another (`linked_id`). */
export const incidentLink = pgTable(
  "incident_link",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    linkedId: partOf("linked_id", () => incident.id),
    kind: text("kind", { enum: incidentLinkKinds }).notNull(),
    createdAt: instant("created_at").notNull(),
  },
  (table) => [
    // Two incidents are linked once, in whichever direction.
    uniqueIndex("incident_link_pair_idx").on(
      sql`least(${table.incidentId}, ${table.linkedId})`,
      sql`greatest(${table.incidentId}, ${table.linkedId})`,
    ),
    index("incident_link_incident_idx").on(table.incidentId, table.id),
    index("incident_link_linked_idx").on(table.linkedId, table.id),
    check("incident_link_kind_known", oneOf("kind", incidentLinkKinds)),
    check("incident_link_of_two", sql`incident_id <> linked_id`),
  ],
);
