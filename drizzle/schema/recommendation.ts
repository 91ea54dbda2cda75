import { sql } from "drizzle-orm";
import { check, index, jsonb, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { id, idOf, partOf } from "./columns.ts";
import { document } from "./document.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { team } from "./team.ts";
import { instant } from "./types.ts";

/** The cause of a recommendation: a record's kind and id, and its name at that time. */
export interface RecommendationReason {
  kind: "incident_type" | "incident_priority" | "term" | "service" | "other";
  id?: number;
  name: string;
}

/**
 * Why a document, a person or a team was proposed for an incident. Informational: it does not prevent deletion of the
 * records it refers to, and is deleted with them. A new proposal replaces it.
 */
export const recommendation = pgTable(
  "recommendation",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    documentId: idOf("document_id").references(() => document.id, { onDelete: "cascade" }),
    individualId: idOf("individual_id").references(() => individual.id, { onDelete: "cascade" }),
    teamId: idOf("team_id").references(() => team.id, { onDelete: "cascade" }),
    pluginSlug: text("plugin_slug").notNull(),
    reasons: jsonb("reasons").$type<RecommendationReason[]>().notNull(),
    createdAt: instant("created_at").notNull(),
  },
  (table) => [
    uniqueIndex("recommendation_document_once_idx").on(table.incidentId, table.documentId, table.pluginSlug),
    uniqueIndex("recommendation_individual_once_idx").on(
      table.incidentId,
      table.individualId,
      table.pluginSlug,
    ),
    uniqueIndex("recommendation_team_once_idx").on(table.incidentId, table.teamId, table.pluginSlug),
    index("recommendation_document_idx").on(table.documentId),
    index("recommendation_individual_idx").on(table.individualId),
    index("recommendation_team_idx").on(table.teamId),
    check("recommendation_of_one", sql`num_nonnulls(document_id, individual_id, team_id) = 1`),
  ],
);
