import { Conflict } from "../../platform/errors.ts";

/** The names in errors of tables whose rows prevent a deletion. */
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
  incident_application: "an incident",
  incident_service: "an incident",
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

/** The SQLSTATE of `on delete restrict` in PostgreSQL 18 and in older releases. */
const referredTo = ["23001", "23503"];

/**
 * Rejects with a Conflict naming what refers to the record, if that prevents the deletion. `what` begins the sentence:
 * `This document`.
 */
export async function unlessReferredTo<T>(what: string, remove: Promise<T>): Promise<T> {
  return remove.catch((error: unknown) => {
    const { code, table_name: table } =
      (error as { cause?: { code?: string; table_name?: string } }).cause ?? {};
    if (!code || !referredTo.includes(code) || !table) throw error;
    throw new Conflict(`${what} is referred to by ${names[table] ?? table}`, { cause: error });
  });
}
