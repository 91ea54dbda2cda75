import { index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { application } from "./application.ts";
import { partOf, referenceTo } from "./columns.ts";
import { incident } from "./incident.ts";
import { service } from "./service.ts";

/** The services that an incident affects. */
export const incidentService = pgTable(
  "incident_service",
  {
    incidentId: partOf("incident_id", () => incident.id),
    serviceId: referenceTo("service_id", () => service.id),
  },
  (table) => [
    primaryKey({ name: "incident_service_pk", columns: [table.incidentId, table.serviceId] }),
    index("incident_service_service_idx").on(table.serviceId, table.incidentId),
  ],
);

/** The applications that an incident affects. */
export const incidentApplication = pgTable(
  "incident_application",
  {
    incidentId: partOf("incident_id", () => incident.id),
    applicationId: referenceTo("application_id", () => application.id),
  },
  (table) => [
    primaryKey({ name: "incident_application_pk", columns: [table.incidentId, table.applicationId] }),
    index("incident_application_application_idx").on(table.applicationId, table.incidentId),
  ],
);
