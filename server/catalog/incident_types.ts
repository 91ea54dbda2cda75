import { t } from "elysia";
import { incidentTypes } from "../../core/catalog/incident_type.ts";
import { visibilities } from "../../drizzle/schema/index.ts";
import type { Deps } from "../deps.ts";
import { closed, id, nullable, oneOf } from "../http/schema.ts";
import { description, name } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

const visibility = oneOf(visibilities, {
  description: "What an incident of it starts with when its reporter does not say",
});
const commander = nullable(id);
const templates = t.Array(t.Object({ resource_type: name, document_id: id }, closed), {
  maxItems: 200,
  description: "An incident gets a document of each resource type, made from the text of that document",
});

/** The kinds of incidents. */
export const incidentTypeRoutes = (deps: Deps) =>
  catalogRoutes(deps, incidentTypes, {
    path: "incident_types",
    parameter: "incident_type_id",
    written: { name, description, visibility, commander_service_id: commander, templates },
    defaults: { description: "", visibility: "Open", commander_service_id: null, templates: [] },
    shown: {
      ...{ name: t.String(), description: t.String(), visibility },
      ...{ commander_service_id: commander, templates },
    },
    fieldsOf: ({ commander_service_id: commanderServiceId, templates, ...body }) => ({
      ...body,
      commanderServiceId,
      templates: templates.map((one) => ({
        resourceType: one.resource_type,
        documentId: one.document_id,
      })),
    }),
    viewOf: ({ name, description, visibility, commanderServiceId, templates }) => ({
      ...{ name, description, visibility, commander_service_id: commanderServiceId },
      templates: templates.map((one) => ({
        resource_type: one.resourceType,
        document_id: one.documentId,
      })),
    }),
  });
