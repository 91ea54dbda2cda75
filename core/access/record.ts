import type { Transaction } from "../../drizzle/client.ts";
import { durationText } from "../../platform/duration.ts";
import { type AuditAction, audit } from "../audit.ts";
import { type EventKind, recordEvent } from "../incident/timeline/event.ts";

/** Actions that both the audit log and the timeline record. */
type AccessAction = AuditAction & EventKind;

/** One change of a request or a lease. */
export interface AccessChange {
  action: AccessAction;
  at: Date;
  /** A user name, or `system`. */
  actor: string;
  /** One line, for people. */
  description: string;
  incidentId: number | null;
  /** `request/7` or `lease/7` */
  subject: string;
  data: Record<string, unknown>;
}

/** Writes a change to the audit log and to the timeline of its incident, in the transaction of the change. */
export async function recordAccess(tx: Transaction, change: AccessChange): Promise<void> {
  const { action, at, actor, description, incidentId, subject, data } = change;
  await audit(tx, { at, actor, action, subject, data });
  if (incidentId === null) return;
  await recordEvent(tx, { incidentId, at, actor, kind: action, description, source: "access", data });
}

/** Formats a duration for people: `1 hour 30 minutes`. */
export const inWords = (seconds: number): string => durationText(new Date(0), new Date(seconds * 1000));
