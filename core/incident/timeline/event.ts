import type { Database, Transaction } from "../../../drizzle/client.ts";
import { event } from "../../../drizzle/schema/index.ts";

export type EventKind =
  | "incident.reported"
  | "incident.updated"
  | "incident.stable"
  | "incident.closed"
  | "incident.reopened"
  | "participant.joined"
  | "participant.left"
  | "participant.deleted"
  | "role.assumed"
  | "role.renounced"
  | "report.written"
  | "note"
  | "message.sent"
  | "task.created"
  | "task.updated"
  | "task.resolved"
  | "task.cancelled"
  | "task.reopened"
  | "task.deleted"
  | "document.created"
  | "document.updated"
  | "document.deleted"
  | "document.proposed"
  | "team.proposed"
  | "conversation.created"
  | "group.created"
  | "step.done"
  | "step.failed"
  | "reminder.sent"
  | "access.requested"
  | "access.approved"
  | "access.denied"
  | "access.cancelled"
  | "access.expired"
  | "access.reviewed"
  | "access.issued"
  | "access.renewed"
  | "access.ending"
  | "access.revoked"
  | "access.failed";

export interface TimelineEvent {
  incidentId: number;
  at: Date;
  /** A user name, `worker` or `system`. */
  actor: string;
  kind: EventKind;
  /** For people, in one line. */
  description: string;
  /** By default `core`. Otherwise a scheduled task or the slug of a plugin. */
  source?: string;
  /** Related ids and changed values, never a secret. */
  data: Record<string, unknown>;
}

/** Appends to an incident's timeline, in the transaction of the change. */
export async function recordEvent(db: Database | Transaction, told: TimelineEvent): Promise<void> {
  await db.insert(event).values({ ...told, source: told.source ?? "core" });
}
