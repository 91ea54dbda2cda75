import type { Database, Transaction } from "../drizzle/client.ts";
import { auditLog } from "../drizzle/schema/index.ts";

export type AuditAction =
  | "challenge.created"
  | "challenge.bound"
  | "challenge.approved"
  | "challenge.denied"
  | "challenge.collected"
  | "challenge.wrong_verifier"
  | "challenge.wrong_user"
  | "session.signed_in"
  | "session.signed_out"
  | "token.revoked"
  | "key.created"
  | "scheduled_task.paused"
  | "scheduled_task.resumed"
  | "delivery.resent"
  | "document.deleted"
  | "incident.deleted"
  | "participant.deleted"
  | "task.deleted"
  | "individual.deleted"
  | "team.deleted"
  | "service.deleted"
  | "application.deleted"
  | "term.deleted"
  | "definition.deleted"
  | "incident_type.deleted"
  | "incident_priority.deleted";

export interface AuditEvent {
  at: Date;
  /** A user name; `client` for a terminal that nobody has vouched for; `system`. */
  actor: string;
  action: AuditAction;
  address?: string;
  /** Id of what was acted on. */
  subject?: string;
  data?: Record<string, unknown>;
}

/** Appends to the audit log, in the transaction of what it tells of. */
export async function audit(db: Database | Transaction, event: AuditEvent): Promise<void> {
  await db.insert(auditLog).values(event);
}
