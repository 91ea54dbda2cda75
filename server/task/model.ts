import { type Static, t } from "elysia";
import { mostAssignees, type TaskFields } from "../../core/incident/task/task.ts";
import { taskStatuses } from "../../drizzle/schema/index.ts";
import { descriptionLength } from "../../platform/text.ts";
import {
  closed,
  id,
  idText,
  instant,
  listQuery,
  nullable,
  oneOf,
  q,
  readOnly,
  version,
} from "../http/schema.ts";
import { personView } from "../participant/model.ts";

const description = t.String({ minLength: 1, maxLength: descriptionLength });
const status = oneOf(taskStatuses);
const email = t.String({ minLength: 1, maxLength: 254, description: "An e-mail address" });
const owner = nullable(email);
const assignees = t.Array(email, { maxItems: mostAssignees });
const resolveBy = t.String({ maxLength: 40, description: "An instant: 2026-11-20T12:00:00Z" });
const reminders = t.Boolean({ description: "Whether people are reminded of it" });

const view = {
  id,
  incident_id: id,
  description: t.String(),
  status,
  creator: nullable(personView),
  owner: nullable(personView),
  assignees: t.Array(personView),
  resolve_by: instant,
  resolved_at: nullable(instant),
  document_id: nullable(id),
  external_id: nullable(
    t.String({ description: "Of a task that is kept in its document, and changed there" }),
  ),
  reminders: t.Boolean(),
  version,
  created_at: instant,
  updated_at: instant,
};

export const taskView = t.Object(view, closed);

export const taskParams = t.Object({ task_id: idText }, closed);

export const taskQuery = listQuery("`resolve_by` (default), `-resolve_by`, `id` or `-id`; with `q` by rank", {
  q,
  incident_id: t.Optional(idText),
  status: t.Optional(status),
  owner: t.Optional(email),
  assignee: t.Optional(email),
  overdue: t.Optional(t.Literal("true")),
});

export const newTask = t.Object(
  {
    incident_id: id,
    description,
    owner: t.Optional(owner),
    assignees: t.Optional(assignees),
    resolve_by: t.Optional(resolveBy),
    document_id: t.Optional(nullable(id)),
    reminders: t.Optional(reminders),
  },
  closed,
);

/** A person by address, or as a task shows them. */
const emailOrPerson = t.Union([email, personView]);
const written = {
  description,
  status,
  owner: t.Union([email, personView, t.Null()]),
  assignees: t.Array(emailOrPerson, { maxItems: mostAssignees }),
  resolve_by: resolveBy,
  reminders,
  version,
};

/** All fields are required, since a PUT replaces the record and an omitted field would be lost. */
export const changedTask = t.Object({ ...written, ...readOnly(view, written) }, closed);

export function fieldsOf(body: Static<typeof newTask> | Static<typeof changedTask>): TaskFields {
  const { description, owner = null, assignees = [], reminders = true } = body;
  return { description, owner: owner && emailOf(owner), assignees: assignees.map(emailOf), reminders };
}

function emailOf(one: Static<typeof emailOrPerson>): string {
  return typeof one === "string" ? one : one.email;
}
