import { sql } from "drizzle-orm";
import { check, foreignKey, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { id, idOf, partOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { team } from "./team.ts";
import { instant } from "./types.ts";

/** The participants of an incident as one address: a group per participant_group plugin in use. */
export const participantGroup = pgTable(
  "participant_group",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    pluginSlug: text("plugin_slug").notNull(),
    /** The plugin's id for it; null if our id suffices. */
    externalId: text("external_id"),
    name: text("name").notNull(),
    email: text("email"),
    weblink: text("weblink"),
    createdAt: instant("created_at").notNull(),
  },
  (table) => [
    uniqueIndex("participant_group_incident_idx").on(table.incidentId, table.pluginSlug),
    uniqueIndex("participant_group_external_id_idx").on(table.pluginSlug, table.externalId),
  ],
);

/** A member of a group of the built-in plugin: an individual, or a team by its address. */
export const participantGroupMember = pgTable(
  "participant_group_member",
  {
    id: id(),
    participantGroupId: idOf("participant_group_id").notNull(),
    individualId: idOf("individual_id").references(() => individual.id, { onDelete: "restrict" }),
    teamId: idOf("team_id").references(() => team.id, { onDelete: "restrict" }),
    addedAt: instant("added_at").notNull(),
  },
  (table) => [
    foreignKey({
      name: "participant_group_member_group_fk",
      columns: [table.participantGroupId],
      foreignColumns: [participantGroup.id],
    }).onDelete("cascade"),
    uniqueIndex("participant_group_member_individual_once_idx").on(
      table.participantGroupId,
      table.individualId,
    ),
    uniqueIndex("participant_group_member_team_once_idx").on(table.participantGroupId, table.teamId),
    index("participant_group_member_individual_idx").on(table.individualId),
    index("participant_group_member_team_idx").on(table.teamId),
    check("participant_group_member_is_one", sql`num_nonnulls(individual_id, team_id) = 1`),
  ],
);
