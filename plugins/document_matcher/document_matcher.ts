import { Type } from "@sinclair/typebox";
import { sql } from "drizzle-orm";
import { matchIncident } from "../../core/incident/incident/match.ts";
import { defineBuiltin } from "../../core/plugin.ts";
import {
  document,
  documentIncidentPriority,
  documentIncidentType,
  documentTerm,
} from "../../drizzle/schema/index.ts";

/** More than anybody reads during an incident. */
const most = 50;

const links = {
  type: { owner: documentIncidentType.documentId, to: documentIncidentType.incidentTypeId },
  priority: { owner: documentIncidentPriority.documentId, to: documentIncidentPriority.incidentPriorityId },
  term: { owner: documentTerm.documentId, to: documentTerm.termId },
};

export default defineBuiltin({
  title: "Document matcher",
  slug: "document-matcher",
  version: "1.0.0",
  type: "document-resolver",
  author: "svc",
  description: "Proposes documents that are linked to an incident's type, priority or the terms in its text",
  configSchema: Type.Object({}),
  inDatabase: true,
  create: (_config, { context }) => ({
    async resolve({ incident }) {
      const matches = await matchIncident(context, incident, links, {
        limit: most,
        // Another incident's document is never proposed: that incident may be Restricted, now or later.
        // Sorted like the index.
        nextOf: (id) => sql`
          select ${document.id} as id from ${document} where ${document.incidentId} is null and ${document.id} >= ${id}
          order by ${document.incidentId}, ${document.id} limit 1`,
      });
      return matches.map(({ id, reasons }) => ({ document: { id }, reasons }));
    },
  }),
});
