import type { Transaction } from "../../drizzle/client.ts";
import * as tables from "../../drizzle/schema/index.ts";
import { sha256 } from "../../platform/secret.ts";
import type { Example, ExampleRecommendation } from "./example.ts";
import { type Defaults, idIn, insertAll, linkRows } from "./rows.ts";

/** Incidents and documents, with all that belongs to them. */
export async function loadIncidents(tx: Transaction, example: Example, defaults: Defaults): Promise<void> {
  const { types, priorities } = defaults;
  await tx
    .insert(tables.incident)
    .overridingSystemValue()
    .values(
      example.incidents.map(({ type, priority, ...incident }) => ({
        ...incident,
        name: `INC-${incident.id}`,
        incidentTypeId: idIn(types, type),
        incidentPriorityId: idIn(priorities, priority),
        createdAt: incident.reportedAt,
      })),
    );
  await loadDocuments(tx, example, defaults);
  await tx.insert(tables.participant).overridingSystemValue().values(example.participants);
  await tx.insert(tables.participantRole).overridingSystemValue().values(example.roles);
  await tx.insert(tables.statusReport).overridingSystemValue().values(example.reports);
  await insertAll(tx, tables.statusReportReminder, example.reminders);
  await tx
    .insert(tables.task)
    .overridingSystemValue()
    .values(example.tasks.map((task) => ({ ...task, ownerId: task.assigneeIds[0] ?? null })));
  await insertAll(
    tx,
    tables.taskAssignee,
    example.tasks.flatMap(({ id: taskId, assigneeIds }) =>
      assigneeIds.map((individualId) => ({ taskId, individualId })),
    ),
  );
  await tx
    .insert(tables.conversation)
    .overridingSystemValue()
    .values(example.conversations.map((row) => ({ ...row, pluginSlug: "channel" })));
  await tx.insert(tables.conversationMessage).overridingSystemValue().values(example.messages);
  await tx
    .insert(tables.participantGroup)
    .overridingSystemValue()
    .values(example.groups.map((row) => ({ ...row, pluginSlug: "mailing-list" })));
  await tx
    .insert(tables.participantGroupMember)
    .overridingSystemValue()
    .values(example.groupMembers.map(({ groupId, ...row }) => ({ ...row, participantGroupId: groupId })));
  const termIds = new Map(example.terms.map(({ id, text }) => [text, id]));
  const idOf = ({ kind, name }: ExampleRecommendation["reasons"][0]) =>
    idIn({ incident_type: types, incident_priority: priorities, term: termIds }[kind], name);
  await tx
    .insert(tables.recommendation)
    .overridingSystemValue()
    .values(
      example.recommendations.map(({ reasons, ...row }) => ({
        ...row,
        reasons: reasons.map((reason) => ({ ...reason, id: idOf(reason) })),
      })),
    );
  await tx.insert(tables.flowStep).values(example.steps);
  await tx.insert(tables.event).overridingSystemValue().values(example.events);
}

/** Their texts are the built-in document plugin's, under the documents' own ids. */
async function loadDocuments(tx: Transaction, example: Example, defaults: Defaults): Promise<void> {
  const { documents } = example;
  await tx
    .insert(tables.document)
    .overridingSystemValue()
    .values(
      documents.map(({ content, tasksOf, tasksReadAt, foundTermIds, ...document }) => {
        const hash = content && sha256(content.text);
        return {
          ...document,
          ...(content && { pluginSlug: "markdown", resourceId: String(document.id) }),
          taskCursor: tasksOf === null ? null : String(tasksOf),
          taskSyncedAt: tasksReadAt,
          contentHash: hash,
          termContentHash: foundTermIds && hash,
          termVocabulary: foundTermIds && "example",
        };
      }),
    );
  await tx.insert(tables.documentContent).values(
    documents.flatMap(({ id: documentId, content, updatedAt }) =>
      content
        ? [
            {
              ...{ documentId, content: content.text, version: content.version, updatedAt },
              hash: sha256(content.text),
            },
          ]
        : [],
    ),
  );
  const links = linkRows(documents, "documentId", defaults);
  await insertAll(tx, tables.documentIncidentType, links.types);
  await insertAll(tx, tables.documentIncidentPriority, links.priorities);
  const found = documents.flatMap(({ id: documentId, termIds, foundTermIds }) =>
    (foundTermIds ?? [])
      .filter((termId) => !termIds.includes(termId))
      .map((termId) => ({ documentId, termId, source: "Found" as const })),
  );
  const given = links.terms.map((row) => ({ ...row, source: "Given" as const }));
  await insertAll(tx, tables.documentTerm, [...given, ...found]);
  await insertAll(
    tx,
    tables.incidentTypeTemplate,
    example.templates.map(({ type, ...row }) => ({ ...row, incidentTypeId: idIn(defaults.types, type) })),
  );
}
