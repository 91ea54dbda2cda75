import { index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { idOf, namedReference, partOf, referenceTo } from "./columns.ts";
import { incidentPriority, incidentType } from "./incident_type.ts";
import { individual } from "./individual.ts";
import { term } from "./term.ts";

// The built-in participant plugin proposes a person for incidents of these types and priorities, and for those whose
// description contains one of these terms. Foreign keys have explicit names where drizzle's would exceed 63 bytes.

export const individualIncidentType = pgTable(
  "individual_incident_type",
  {
    individualId: partOf("individual_id", () => individual.id),
    incidentTypeId: idOf("incident_type_id").notNull(),
  },
  (table) => [
    primaryKey({ name: "individual_incident_type_pk", columns: [table.individualId, table.incidentTypeId] }),
    namedReference("individual_incident_type_type_fk", table.incidentTypeId, incidentType.id),
    index("individual_incident_type_type_idx").on(table.incidentTypeId),
  ],
);

export const individualIncidentPriority = pgTable(
  "individual_incident_priority",
  {
    individualId: partOf("individual_id", () => individual.id),
    incidentPriorityId: idOf("incident_priority_id").notNull(),
  },
  (table) => [
    primaryKey({
      name: "individual_incident_priority_pk",
      columns: [table.individualId, table.incidentPriorityId],
    }),
    namedReference("individual_incident_priority_priority_fk", table.incidentPriorityId, incidentPriority.id),
    index("individual_incident_priority_priority_idx").on(table.incidentPriorityId),
  ],
);

export const individualTerm = pgTable(
  "individual_term",
  {
    individualId: partOf("individual_id", () => individual.id),
    termId: referenceTo("term_id", () => term.id),
  },
  (table) => [
    primaryKey({ name: "individual_term_pk", columns: [table.individualId, table.termId] }),
    index("individual_term_term_idx").on(table.termId),
  ],
);
