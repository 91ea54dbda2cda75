import { index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { idOf, namedReference, partOf, referenceTo } from "./columns.ts";
import { incidentPriority, incidentType } from "./incident_type.ts";
import { team } from "./team.ts";
import { term } from "./term.ts";

// When the built-in participant plugin proposes a team, analogous to individuals.

export const teamIncidentType = pgTable(
  "team_incident_type",
  {
    teamId: partOf("team_id", () => team.id),
    incidentTypeId: idOf("incident_type_id").notNull(),
  },
  (table) => [
    primaryKey({ name: "team_incident_type_pk", columns: [table.teamId, table.incidentTypeId] }),
    namedReference("team_incident_type_type_fk", table.incidentTypeId, incidentType.id),
    index("team_incident_type_type_idx").on(table.incidentTypeId),
  ],
);

export const teamIncidentPriority = pgTable(
  "team_incident_priority",
  {
    teamId: partOf("team_id", () => team.id),
    incidentPriorityId: idOf("incident_priority_id").notNull(),
  },
  (table) => [
    primaryKey({ name: "team_incident_priority_pk", columns: [table.teamId, table.incidentPriorityId] }),
    namedReference("team_incident_priority_priority_fk", table.incidentPriorityId, incidentPriority.id),
    index("team_incident_priority_priority_idx").on(table.incidentPriorityId),
  ],
);

export const teamTerm = pgTable(
  "team_term",
  {
    teamId: partOf("team_id", () => team.id),
    termId: referenceTo("term_id", () => term.id),
  },
  (table) => [
    primaryKey({ name: "team_term_pk", columns: [table.teamId, table.termId] }),
    index("team_term_term_idx").on(table.termId),
  ],
);
