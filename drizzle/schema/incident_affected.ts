import { index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { application } from "./application.ts";
import { idOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { service } from "./service.ts";

/** The services that an incident affects. */
export const incidentService = pgTable(
  "incident_service",
  {
    incidentId: idOf("incident_id")
      .notNull()
      .references(() => incident.id, { onDelete: "cascade" }),
    serviceId: idOf("service_id")
      .notNull()
      .references(() => service.id, { onDelete: "restrict" }),
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
    incidentId: idOf("incident_id")
      .notNull()
      .references(() => incident.id, { onDelete: "cascade" }),
    applicationId: idOf("application_id")
      .notNull()
      .references(() => application.id, { onDelete: "restrict" }),
  },
  (table) => [
    primaryKey({ name: "incident_application_pk", columns: [table.incidentId, table.applicationId] }),
    index("incident_application_application_idx").on(table.applicationId, table.incidentId),
  ],
);
