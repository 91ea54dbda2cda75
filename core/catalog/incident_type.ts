import { eq, getTableColumns, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { document, incidentType, incidentTypeTemplate, service } from "../../drizzle/schema/index.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { descriptionLength, parseName, parseText } from "../../platform/text.ts";
import { keepTargets } from "./link.ts";
import { byText, listOf, type Resource } from "./resource.ts";

type Template = Pick<typeof incidentTypeTemplate.$inferSelect, "resourceType" | "documentId">;

const { search, ...row } = getTableColumns(incidentType);
const found = sql`select json_agg(json_build_object(
    'resourceType', ${incidentTypeTemplate.resourceType}, 'documentId', ${incidentTypeTemplate.documentId})
    order by ${incidentTypeTemplate.resourceType})
  from ${incidentTypeTemplate} where ${incidentTypeTemplate.incidentTypeId} = ${incidentType.id}`;
const columns = {
  ...row,
  // Nested, because drizzle would otherwise drop the columns' table names.
  templates: sql<Template[]>`${sql`coalesce((${found}), '[]')`}`,
};

export type IncidentTypeFields = Pick<
  typeof incidentType.$inferSelect,
  "name" | "description" | "visibility" | "commanderServiceId" | "postmortem"
> & { templates: Template[] };

/** Only admins may write types: they decide who may read an incident, and who is called. */
export const incidentTypes: Resource<typeof incidentType, typeof columns, IncidentTypeFields> = {
  one: "incident type",
  many: "incident types",
  table: incidentType,
  columns,
  list: listOf("incident_types", incidentType, { name: incidentType.name }),
  filters: { name: byText("name", incidentType.name) },
  writers: "admins",
  deleted: "incident_type.deleted",
  taken: { incident_type_name_idx: "Another incident type has this name" },
  parse: ({ name, description, visibility, commanderServiceId, postmortem }) => ({
    name: parseName("name", name),
    description: parseText("description", description, descriptionLength),
    visibility,
    commanderServiceId,
    postmortem,
  }),
  prepare: async (tx, { commanderServiceId: id }) =>
    void (await keepTargets(tx, { id: service.id }, "commander_service_id", id === null ? [] : [id])),
  keep: (tx, id, { templates }) => setTemplates(tx, id, templates),
};

/**
 * @throws InvalidInput for a document that does not exist or belongs to an incident, and for a duplicate resource type
 */
async function setTemplates(tx: Transaction, incidentTypeId: number, wanted: Template[]): Promise<void> {
  const templates = wanted.map(({ resourceType, documentId }) => ({
    incidentTypeId,
    documentId,
    resourceType: parseName("templates.resource_type", resourceType),
  }));
  if (new Set(templates.map(({ resourceType }) => resourceType)).size < templates.length)
    throw new InvalidInput("templates", "Two templates have the same resource_type");
  // Everyone who reads an incident of the type reads the template's text, so it must not belong to an incident.
  const ofNone = { id: document.id, present: isNull(document.incidentId) };
  await keepTargets(
    tx,
    ofNone,
    "templates.document_id",
    templates.map(({ documentId }) => documentId),
  );
  await tx.delete(incidentTypeTemplate).where(eq(incidentTypeTemplate.incidentTypeId, incidentTypeId));
  if (templates.length > 0) await tx.insert(incidentTypeTemplate).values(templates);
}
