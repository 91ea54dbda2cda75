import { minuteText } from "../../platform/duration.ts";
import { literally } from "../../platform/markdown.ts";
import type { Config } from "../config.ts";
import type { TaskStatus } from "../incident/task/status.ts";
import { taskLine, taskSaid } from "../incident/task/write.ts";
import type { Outgoing } from "../outbox/deliver.ts";

/** A change of a task in its document. */
export interface TaskNotice {
  kind: keyof typeof taskSaid;
  taskId: number;
  /** The task's version after it, which distinguishes its notices. */
  version: number;
  description: string;
  status: TaskStatus;
  owner: string | null;
  /** Addresses. */
  assignees: readonly string[];
  resolveBy: Date;
}

interface About extends Pick<Config, "publicUrl" | "timezone"> {
  incidentId: number;
  /** `INC-1` */
  incident: string;
  document: { name: string; weblink: string | null };
}

/** The message about it to everyone in the incident's conversations, sent once. */
export function outgoingOf(
  { kind, taskId, version, status, ...task }: TaskNotice,
  { incidentId, incident, document, publicUrl, timezone }: About,
): Outgoing {
  const people = [...new Set([task.owner, ...task.assignees])].filter((email) => email !== null);
  const isNew = kind === "task.created" || kind === "task.updated" || kind === "task.reopened";
  const lines = [
    literally(taskLine(task.description)),
    ...(people.length > 0 ? [`For: ${people.map(literally).join(", ")}`] : []),
    // A document may contain a task that is already done.
    ...(isNew
      ? [status === "Open" ? `Due: ${minuteText(task.resolveBy, timezone)}` : `It is ${status}`]
      : []),
    `In: ${literally(document.name)}${document.weblink === null ? "" : ` (${document.weblink})`}`,
    `${publicUrl}/incidents/${incidentId}`,
  ];
  return {
    key: { task: "incident-task-sync", what: `task-${taskId}-version-${version}`, whom: "conversation" },
    incidentId,
    awaitsOpening: true,
    message: { subject: `${incident}: ${taskSaid[kind]}`, text: lines.join("\n\n") },
  };
}
