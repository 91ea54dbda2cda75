import { Conflict } from "../../platform/errors.ts";

/** How the tables that stand in the way of deleting something are called to its face. */
const names: Readonly<Record<string, string>> = {
  access_lease: "a lease",
  access_request: "an access request",
  conversation_message: "a message",
  definition_term: "a definition",
  document: "a document",
  document_incident_priority: "a document's priorities",
  document_incident_type: "a document's incident types",
  document_term: "a document's terms",
  incident: "an incident",
  incident_type: "an incident type",
  incident_type_template: "an incident type's templates",
  individual_incident_priority: "an individual's priorities",
  individual_incident_type: "an individual's incident types",
  individual_term: "an individual's terms",
  participant: "a participant",
  participant_group_member: "a participant group",
  rotation_member: "a rotation",
  status_report: "a status report",
  task: "a task",
  task_assignee: "a task's assignees",
  team_incident_priority: "a team's priorities",
  team_incident_type: "a team's incident types",
  team_term: "a team's terms",
};

/** `on delete restrict` as PostgreSQL 18 and as its predecessors call it. */
const referredTo = ["23001", "23503"];

/**
 * Rejects with a Conflict that says what refers to the record, when that is why it cannot be deleted.
 * `what` begins the sentence: `This document`.
 */
export async function unlessReferredTo<T>(what: string, remove: Promise<T>): Promise<T> {
  return remove.catch((error: unknown) => {
    const { code, table_name: table } =
      (error as { cause?: { code?: string; table_name?: string } }).cause ?? {};
    if (!code || !referredTo.includes(code) || !table) throw error;
    throw new Conflict(`${what} is referred to by ${names[table] ?? table}`, { cause: error });
  });
}
