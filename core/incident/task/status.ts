import type { taskStatuses } from "../../../drizzle/schema/index.ts";
import type { EventKind } from "../timeline/event.ts";

export type TaskStatus = (typeof taskStatuses)[number];

/** The state of a task. `resolvedAt` is set while it is Resolved. */
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
 * Any status may change to any other, because people tick the wrong line. `resolvedAt` is set each time it is resolved,
 * and cleared otherwise. Without `kind`, nothing happens.
 */
export function transition(
  from: TaskState,
  status: TaskStatus,
  at: Date,
): TaskState & { kind?: (typeof kinds)[TaskStatus] } {
  if (from.status === status) return { status, resolvedAt: from.resolvedAt };
  return { status, resolvedAt: status === "Resolved" ? at : null, kind: kinds[status] };
}
