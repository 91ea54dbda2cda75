import type { taskStatuses } from "../../../drizzle/schema/index.ts";
import type { EventKind } from "../timeline/event.ts";

export type TaskStatus = (typeof taskStatuses)[number];

/** Where a task stands; `resolvedAt` is when it was resolved, of a Resolved one. */
export interface TaskState {
  status: TaskStatus;
  resolvedAt: Date | null;
}

const kinds = {
  Open: "task.reopened",
  Resolved: "task.resolved",
  Cancelled: "task.cancelled",
} as const satisfies Record<TaskStatus, EventKind>;

/**
 * From any status to any other: people tick the wrong line. `resolvedAt` is set once each time it is resolved and is
 * gone with that. Without `kind`, nothing happens.
 */
export function transition(
  from: TaskState,
  status: TaskStatus,
  at: Date,
): TaskState & { kind?: (typeof kinds)[TaskStatus] } {
  if (from.status === status) return { status, resolvedAt: from.resolvedAt };
  return { status, resolvedAt: status === "Resolved" ? at : null, kind: kinds[status] };
}
