import { minuteText } from "../../platform/duration.ts";
import { literally } from "../../platform/markdown.ts";
import type { Config } from "../config.ts";
import type { TaskStatus } from "../incident/task/status.ts";
import { taskLine, taskSaid } from "../incident/task/write.ts";
import type { Outgoing } from "../outbox/deliver.ts";

/** Something that happened to a task in its document. */
export interface TaskNotice {
  kind: keyof typeof taskSaid;
  taskId: number;
  /** The task's with it: what tells one notice of a task from the next. */
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

/** What everyone who talks about the incident is told of it, once. */
export function outgoingOf(
  { kind, taskId, version, status, ...task }: TaskNotice,
  { incidentId, incident, document, publicUrl, timezone }: About,
): Outgoing {
  const people = [...new Set([task.owner, ...task.assignees])].filter((email) => email !== null);
  const isNew = kind === "task.created" || kind === "task.updated" || kind === "task.reopened";
  const lines = [
    literally(taskLine(task.description)),
    ...(people.length > 0 ? [`For: ${people.map(literally).join(", ")}`] : []),
    // A document may bring a task that is done already.
    ...(isNew
      ? [status === "Open" ? `Due: ${minuteText(task.resolveBy, timezone)}` : `It is ${status}`]
      : []),
    `In: ${literally(document.name)}${document.weblink === null ? "" : ` (${document.weblink})`}`,
    `${publicUrl}/incidents/${incidentId}`,
  ];
  return {
    key: { task: "incident-task-sync", what: `task-${taskId}-version-${version}`, whom: "conversation" },
    incidentId,
    message: { subject: `${incident}: ${taskSaid[kind]}`, text: lines.join("\n\n") },
  };
}
