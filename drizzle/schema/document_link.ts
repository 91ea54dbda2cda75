import { check, foreignKey, index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { idOf, namedReference, oneOf, partOf, referenceTo } from "./columns.ts";
import { document } from "./document.ts";
import { incidentPriority, incidentType } from "./incident_type.ts";
import { term } from "./term.ts";

// The document-resolver plugin proposes a document for incidents of these types and priorities, and for those whose
// description contains one of its terms.

export const documentIncidentType = pgTable(
  "document_incident_type",
  {
    documentId: partOf("document_id", () => document.id),
    incidentTypeId: idOf("incident_type_id").notNull(),
  },
  (table) => [
    primaryKey({ name: "document_incident_type_pk", columns: [table.documentId, table.incidentTypeId] }),
    namedReference("document_incident_type_type_fk", table.incidentTypeId, incidentType.id),
    index("document_incident_type_type_idx").on(table.incidentTypeId, table.documentId),
  ],
);

export const documentIncidentPriority = pgTable(
  "document_incident_priority",
  {
    documentId: partOf("document_id", () => document.id),
    incidentPriorityId: idOf("incident_priority_id").notNull(),
  },
  (table) => [
    primaryKey({
      name: "document_incident_priority_pk",
      columns: [table.documentId, table.incidentPriorityId],
    }),
    namedReference("document_incident_priority_priority_fk", table.incidentPriorityId, incidentPriority.id),
    index("document_incident_priority_priority_idx").on(table.incidentPriorityId, table.documentId),
  ],
);

/**
 * Found: added by document-term-sync because the text contains it, and removed when it no longer does. Given: added by
 * a person, and kept.
 */
const documentTermSources = ["Found", "Given"] as const;

export const documentTerm = pgTable(
  "document_term",
  {
    documentId: partOf("document_id", () => document.id),
    termId: referenceTo("term_id", () => term.id),
    source: text("source", { enum: documentTermSources }).notNull(),
  },
  (table) => [
    primaryKey({ name: "document_term_pk", columns: [table.documentId, table.termId] }),
    index("document_term_term_idx").on(table.termId, table.documentId),
    check("document_term_source_known", oneOf("source", documentTermSources)),
  ],
);

/** An incident of this type gets a document of this resource type, created from this template. */
export const incidentTypeTemplate = pgTable(
  "incident_type_template",
  {
    incidentTypeId: idOf("incident_type_id").notNull(),
    /** The type of the created document. */
    resourceType: text("resource_type").notNull(),
    documentId: referenceTo("document_id", () => document.id),
  },
  (table) => [
    primaryKey({ name: "incident_type_template_pk", columns: [table.incidentTypeId, table.resourceType] }),
    foreignKey({
      name: "incident_type_template_type_fk",
      columns: [table.incidentTypeId],
      foreignColumns: [incidentType.id],
    }).onDelete("cascade"),
    index("incident_type_template_document_idx").on(table.documentId),
  ],
);
