import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id, idOf, partOf, referenceTo, withinYears } from "./columns.ts";
import { individual } from "./individual.ts";
import { instant, searchVector } from "./types.ts";

/** Something with a person on call. The plugin `plugin_slug` knows who, under its `external_id`. */
export const service = pgTable(
  "service",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** Null: no one is on call. */
    pluginSlug: text("plugin_slug"),
    /** Null if the plugin identifies the service by our id, like the built-in rotation. */
    externalId: text("external_id"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("service_name_idx").on(table.name),
    uniqueIndex("service_external_id_idx").on(table.pluginSlug, table.externalId),
    index("service_search_idx").using("gin", table.search),
    check("service_external_id_of_a_plugin", sql`external_id is null or plugin_slug is not null`),
  ],
);

/** The built-in rotation: from `starts_at`, each member in turn is on call for `shift_hours`. */
export const rotation = pgTable(
  "rotation",
  {
    serviceId: idOf("service_id")
      .primaryKey()
      .references(() => service.id, { onDelete: "cascade" }),
    startsAt: instant("starts_at").notNull(),
    shiftHours: integer("shift_hours").notNull(),
  },
  () => [check("rotation_turns", sql`shift_hours > 0`), check("rotation_times", withinYears("starts_at"))],
);

/** A place in a rotation. A person may have several. */
export const rotationMember = pgTable(
  "rotation_member",
  {
    serviceId: partOf("service_id", () => rotation.serviceId),
    position: integer("position").notNull(),
    individualId: referenceTo("individual_id", () => individual.id),
  },
  (table) => [
    primaryKey({ name: "rotation_member_pk", columns: [table.serviceId, table.position] }),
    index("rotation_member_individual_idx").on(table.individualId),
  ],
);
