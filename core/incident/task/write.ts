import { and, eq, type SQL } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { task, taskAssignee } from "../../../drizzle/schema/index.ts";
import { type EventKind, recordEvent } from "../timeline/event.ts";
import { addAssignees, individualsOf } from "./people.ts";
import { type TaskState, type TaskStatus, transition } from "./status.ts";
import type { TaskFields } from "./task.ts";

// The effects of a task change within its transaction, whether a person or incident-task-sync makes it.

/** Who changes a task and when, for its row and the timeline. */
export interface Change {
  at: Date;
  /** A user name, `worker` or `system`. */
  actor: string;
  /** As in `TimelineEvent`. */
  source?: string;
}

/** Fields as returned by `parseTask`. */
export interface TaskRow extends TaskFields {
  incidentId: number;
  creator: string | null;
  status: TaskStatus;
  resolveBy: Date;
  documentId: number | null;
  externalId: string | null;
}

/** Inserts a new task with the people it names, and records the event. */
export async function insertTask(tx: Transaction, row: TaskRow, change: Change): Promise<number> {
  const { creator, owner, assignees, status, ...values } = row;
  const { at } = change;
  const named = [creator, owner, ...assignees].filter((email) => email !== null);
  const ids = await individualsOf(tx, named, at);
  const { resolvedAt } = transition({ status: "Open", resolvedAt: null }, status, at);
  const creatorId = creator === null ? null : ids.get(creator)!;
  const ownerId = owner === null ? null : ids.get(owner)!;
  const [made] = await tx
    .insert(task)
    .values({ ...values, status, resolvedAt, creatorId, ownerId, createdAt: at, updatedAt: at })
    .returning({ id: task.id });
  const { id } = made!;
  await addAssignees(tx, id, assignees, ids);
  await recordTaskEvent(tx, "task.created", { id, ...values }, change);
  return id;
}

export interface TaskChange extends TaskFields {
  status: TaskStatus;
  resolveBy: Date;
}

/**
 * Replaces the fields of a task that was read as `current`, and records the events: its new status, and another change
 * if there is one or if nothing changed.
 *
 * @returns false if it is no longer at the version that was read, or `condition` does not hold: it is then unchanged
 */
export async function writeTask(
  tx: Transaction,
  current: TaskState & TaskFields & { id: number; incidentId: number; version: number; resolveBy: Date },
  next: TaskChange,
  { condition, ...change }: Change & { condition?: SQL },
): Promise<boolean> {
  const { id, version, incidentId } = current;
  const { at } = change;
  const { description, resolveBy, reminders, owner, assignees } = next;
  const { kind, ...state } = transition(current, next.status, at);
  const ids = await individualsOf(tx, owner === null ? assignees : [owner, ...assignees], at);
  const ownerId = owner === null ? null : ids.get(owner)!;
  const [written] = await tx
    .update(task)
    .set({ description, resolveBy, reminders, ownerId, ...state, version: version + 1, updatedAt: at })
    .where(and(eq(task.id, id), eq(task.version, version), condition))
    .returning({ id: task.id });
  if (!written) return false;
  await tx.delete(taskAssignee).where(eq(taskAssignee.taskId, id));
  await addAssignees(tx, id, assignees, ids);
  const subject = { id, incidentId, description };
  if (kind) await recordTaskEvent(tx, kind, subject, change);
  if (!kind || !sameContent(current, next) || current.reminders !== reminders)
    await recordTaskEvent(tx, "task.updated", subject, change);
  return true;
}

/** Whether both have the same content: description, people and due time. Addresses are sorted. */
export function sameContent(
  one: Omit<TaskChange, "status" | "reminders">,
  other: Omit<TaskChange, "status" | "reminders">,
): boolean {
  return (
    one.description === other.description &&
    one.owner === other.owner &&
    one.resolveBy.getTime() === other.resolveBy.getTime() &&
    one.assignees.join() === other.assignees.join()
  );
}

/** The timeline's words for each event of a task. */
export const taskSaid = {
  "task.created": "Task added",
  "task.updated": "Task changed",
  "task.resolved": "Task resolved",
  "task.cancelled": "Task cancelled",
  "task.reopened": "Task reopened",
  "task.deleted": "Task deleted",
} as const satisfies Partial<Record<EventKind, string>>;

/** Longer descriptions are cut where a task has one line. */
const quotedCharacters = 200;

/** Returns a description as one line. */
export function taskLine(description: string): string {
  const line = description.replaceAll(/\s+/g, " ").trim();
  return line.length > quotedCharacters ? `${line.slice(0, quotedCharacters).toWellFormed()}…` : line;
}

export async function recordTaskEvent(
  tx: Transaction,
  kind: keyof typeof taskSaid,
  { id, incidentId, description }: { id: number; incidentId: number; description: string },
  change: Change,
): Promise<void> {
  await recordEvent(tx, {
    ...change,
    incidentId,
    kind,
    description: `${taskSaid[kind]}: ${taskLine(description)}`,
    data: { task_id: id },
  });
}
