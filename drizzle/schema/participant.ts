import { sql } from "drizzle-orm";
import { check, foreignKey, index, pgTable, text, unique, uniqueIndex } from "drizzle-orm/pg-core";
import { id, idOf, oneOf, partOf, referenceTo, withinYears } from "./columns.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { instant } from "./types.ts";

export const participantRoles = [
  "commander",
  "scribe",
  "liaison",
  "participant",
  "reporter",
  "observer",
] as const;

/** An individual in an incident: active until `left_at`. A person who returns is a new participant. */
export const participant = pgTable(
  "participant",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    individualId: referenceTo("individual_id", () => individual.id),
    joinedAt: instant("joined_at").notNull(),
    leftAt: instant("left_at"),
  },
  (table) => [
    uniqueIndex("participant_active_idx")
      .on(table.incidentId, table.individualId)
      .where(sql`left_at is null`),
    index("participant_incident_idx").on(table.incidentId, table.id),
    index("participant_individual_idx").on(table.individualId, table.incidentId),
    // For access to Restricted incidents: needed by nearly every request, and answered by the index alone.
    index("participant_individual_active_idx")
      .on(table.individualId, table.incidentId)
      .where(sql`left_at is null`),
    // For the foreign key of participant_role, which includes the incident.
    unique("participant_of_incident").on(table.id, table.incidentId),
  ],
);

/** A role from `assumed_at` until `renounced_at`; open while that is null. A handover is one transaction. */
export const participantRole = pgTable(
  "participant_role",
  {
    id: id(),
    participantId: idOf("participant_id").notNull(),
    /** The participant's incident, for the index that allows one open commander. */
    incidentId: idOf("incident_id").notNull(),
    role: text("role", { enum: participantRoles }).notNull(),
    assumedAt: instant("assumed_at").notNull(),
    renouncedAt: instant("renounced_at"),
  },
  (table) => [
    foreignKey({
      name: "participant_role_participant_fk",
      columns: [table.participantId, table.incidentId],
      foreignColumns: [participant.id, participant.incidentId],
    }).onDelete("cascade"),
    uniqueIndex("participant_role_one_commander_idx")
      .on(table.incidentId)
      .where(sql`role = 'commander' and renounced_at is null`),
    uniqueIndex("participant_role_open_idx")
      .on(table.participantId, table.role)
      .where(sql`renounced_at is null`),
    index("participant_role_participant_idx").on(table.participantId, table.incidentId),
    index("participant_role_incident_idx").on(table.incidentId),
    // For the time to a commander, which the index alone answers.
    index("participant_role_commander_idx")
      .on(table.incidentId, table.assumedAt)
      .where(sql`role = 'commander'`),
    check("participant_role_known", oneOf("role", participantRoles)),
    check("participant_role_times", withinYears("assumed_at", "renounced_at")),
  ],
);
