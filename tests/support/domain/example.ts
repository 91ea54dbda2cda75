import { asc, eq, getTableColumns } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import * as tables from "../../../drizzle/schema/index.ts";

export type Example = Awaited<ReturnType<typeof readLoadedExample>>;

/** The contents of the database after the example is loaded, ordered by id. */
export async function readLoadedExample(db: Database) {
  const { incident, incidentType, incidentPriority, document, documentContent, definition, task } = tables;
  const found = await db.select().from(tables.documentTerm);
  const defined = await db.select().from(tables.definitionTerm);
  const assigned = await db.select().from(tables.taskAssignee);
  const documents = await db
    .select({ ...getTableColumns(document), content: documentContent.content })
    .from(document)
    .leftJoin(documentContent, eq(documentContent.documentId, document.id))
    .orderBy(asc(document.id));
  const definitions = await db.select().from(definition).orderBy(asc(definition.id));
  const tasks = await db.select().from(task).orderBy(asc(task.id));
  return {
    individuals: await db.select().from(tables.individual).orderBy(asc(tables.individual.id)),
    teams: await db.select().from(tables.team).orderBy(asc(tables.team.id)),
    services: await db.select().from(tables.service).orderBy(asc(tables.service.id)),
    terms: await db.select().from(tables.term).orderBy(asc(tables.term.id)),
    definitions: definitions.map((row) => ({
      ...row,
      termIds: defined.filter(({ definitionId }) => definitionId === row.id).map(({ termId }) => termId),
    })),
    applications: await db.select().from(tables.application).orderBy(asc(tables.application.id)),
    incidents: await db
      .select({
        ...getTableColumns(incident),
        type: incidentType.name,
        priority: incidentPriority.name,
      })
      .from(incident)
      .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
      .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
      .orderBy(asc(incident.id)),
    documents: documents.map((row) => ({
      ...row,
      termIds: found.filter(({ documentId }) => documentId === row.id).map(({ termId }) => termId),
    })),
    participants: await db.select().from(tables.participant).orderBy(asc(tables.participant.id)),
    roles: await db.select().from(tables.participantRole).orderBy(asc(tables.participantRole.id)),
    reports: await db.select().from(tables.statusReport).orderBy(asc(tables.statusReport.id)),
    tasks: tasks.map((row) => ({
      ...row,
      assigneeIds: assigned.filter(({ taskId }) => taskId === row.id).map(({ individualId }) => individualId),
    })),
    conversations: await db.select().from(tables.conversation).orderBy(asc(tables.conversation.id)),
    messages: await db.select().from(tables.conversationMessage).orderBy(asc(tables.conversationMessage.id)),
    groups: await db.select().from(tables.participantGroup).orderBy(asc(tables.participantGroup.id)),
    groupMembers: await db
      .select()
      .from(tables.participantGroupMember)
      .orderBy(asc(tables.participantGroupMember.id)),
    recommendations: await db.select().from(tables.recommendation).orderBy(asc(tables.recommendation.id)),
    events: await db.select().from(tables.event).orderBy(asc(tables.event.id)),
  };
}
