import { and, eq, isNull, lt, type SQL, sql } from "drizzle-orm";
import { individual, task, taskAssignee } from "../../../drizzle/schema/index.ts";
import { parseUserName } from "../../auth/user/field.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import {
  type AnyReader,
  type IncidentRef,
  mayReadOf,
  type Reader,
  readableKindsOf,
} from "../visibility/visibility.ts";
import type { TaskStatus } from "./status.ts";
import { type Task, taskColumns } from "./task.ts";

export interface TaskQuery extends ListQuery {
  incidentId?: number;
  status?: TaskStatus;
  /** E-mail addresses. */
  owner?: string;
  assignee?: string;
  /** Only Open tasks whose due time has passed. */
  overdue?: boolean;
}

const tasks: List<"resolve_by" | "id"> = {
  name: "tasks",
  id: task.id,
  search: task.search,
  sorts: {
    resolve_by: { by: task.resolveBy, kind: "instant" },
    id: { by: task.id, kind: "id" },
  },
  defaultSort: "resolve_by",
};

/** Returns a page of the tasks that the actor may read, most urgent first. @throws InvalidInput */
export async function listTasks(
  { db, clock, config }: Context,
  actor: Actor,
  query: TaskQuery,
): Promise<{ items: Task[]; next_cursor: string | null }> {
  const { incidentId, status, overdue } = query;
  const owner = query.owner === undefined ? undefined : parseUserName("owner", query.owner, config.domain);
  const assignee =
    query.assignee === undefined ? undefined : parseUserName("assignee", query.assignee, config.domain);
  const page = startPage(tasks, query, {
    incidentId,
    status,
    owner,
    assignee,
    overdue: overdue ? 1 : undefined,
  });
  const select = (reader: Reader | AnyReader, of: IncidentRef) =>
    db
      .select({ item: taskColumns, key: page.key })
      .from(task)
      .where(
        page.within(
          and(
            isNull(task.deletedAt),
            mayReadOf(reader, task.incidentId),
            incidentId === undefined ? undefined : eq(task.incidentId, of),
            status === undefined ? undefined : eq(task.status, status),
            owner === undefined ? undefined : sql`${task.ownerId} = ${idOf(owner)}`,
            assignee === undefined ? undefined : isAssigned(assignee),
            overdue ? and(eq(task.status, "Open"), lt(task.resolveBy, clock.now())) : undefined,
          ),
          readableKindsOf(reader, task),
        ),
      )
      .orderBy(...page.orderBy)
      .limit(page.limit);
  return page.finish(await page.run(db, actor, select));
}

function idOf(email: string): SQL {
  return sql`(select ${individual.id} from ${individual} where ${individual.email} = ${email})`;
}

function isAssigned(email: string): SQL {
  return sql`${task.id} in (
    select ${taskAssignee.taskId} from ${taskAssignee} where ${taskAssignee.individualId} = ${idOf(email)})`;
}
