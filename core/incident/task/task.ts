import { getTableColumns, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import { individual, task, taskAssignee } from "../../../drizzle/schema/index.ts";
import { InvalidInput, NotFound } from "../../../platform/errors.ts";
import { parseProse } from "../../../platform/text.ts";
import { parseUserName } from "../../auth/user/field.ts";
import { type Person, personJson } from "../../catalog/person/person.ts";

const { creatorId, ownerId, deletedAt, lastReminderAt, search, ...columns } = getTableColumns(task);

/** The visible columns of a task. The people are subqueries, so that a page of tasks is one query. */
export const taskColumns = {
  ...columns,
  creator: personOf(creatorId),
  owner: personOf(ownerId),
  assignees: assignees(),
};

export type Task = SelectResultFields<typeof taskColumns>;

/** What a PUT replaces, with people by their e-mail addresses. */
export interface TaskFields {
  description: string;
  owner: string | null;
  assignees: string[];
  reminders: boolean;
}

export const mostAssignees = 100;

/** Returns unique addresses in canonical spelling. @throws InvalidInput with the API's name of the field */
export function parseTask(fields: TaskFields, domain: string | undefined): TaskFields {
  if (fields.assignees.length > mostAssignees)
    throw new InvalidInput("assignees", `A task has at most ${mostAssignees} assignees`);
  const assignees = fields.assignees.map((name) => parseUserName("assignees", name, domain));
  return {
    description: parseProse("description", fields.description),
    owner: fields.owner === null ? null : parseUserName("owner", fields.owner, domain),
    assignees: [...new Set(assignees)].sort(),
    reminders: fields.reminders,
  };
}

/** The same error for tasks that do not exist, are gone from their document, or may not be read. */
export function noSuchTask(): NotFound {
  return new NotFound("There is no such task");
}

function personOf(id: PgColumn): SQL<Person | null> {
  const found = sql`select ${personJson} from ${individual} where ${individual.id} = ${id}`;
  // Nested, because drizzle would otherwise drop the tables' names, which distinguish the ids.
  return sql`(${found})`;
}

/** Lateral, because with a join PostgreSQL reads everybody if its statistics are from when there were few people. */
function assignees(): SQL<Person[]> {
  const found = sql`
    select coalesce(json_agg(${personJson} order by ${individual.email}), '[]') from ${taskAssignee}
    cross join lateral (
      select * from ${individual} where ${individual.id} = ${taskAssignee.individualId} offset 0) as ${individual}
    where ${taskAssignee.taskId} = ${task.id}`;
  return sql`(${found})`;
}
