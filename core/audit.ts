import type { Database, Transaction } from "../drizzle/client.ts";
import { auditLog } from "../drizzle/schema/index.ts";
import { addressScope } from "../platform/address.ts";
import { wakeWorkersAfter } from "./wake.ts";

export const auditActions = [
  "challenge.created",
  "challenge.approved",
  "challenge.denied",
  "challenge.collected",
  "challenge.wrong_verifier",
  "challenge.wrong_user",
  "session.signed_in",
  "session.signed_out",
  "logout.received",
  "sign_in.ended",
  "token.revoked",
  "certificate.issued",
  "certificate.renewed",
  "certificate.revoked",
  "key.created",
  "authority.created",
  "authority.rotated",
  "scheduled_task.started",
  "scheduled_task.paused",
  "scheduled_task.resumed",
  "schedule.rewound",
  "delivery.resent",
  "delivery.discarded",
  "step.retried",
  "event.redacted",
  "document.redacted",
  "document.deleted",
  "incident.deleted",
  "participant.deleted",
  "task.deleted",
  "individual.deleted",
  "team.deleted",
  "service.deleted",
  "application.deleted",
  "term.deleted",
  "definition.deleted",
  "incident_type.deleted",
  "incident_priority.deleted",
  "access_role.created",
  "access_role.updated",
  "access_role.deleted",
  "access_role.reconciled",
  "access.requested",
  "access.approved",
  "access.denied",
  "access.cancelled",
  "access.expired",
  "access.reviewed",
  "access.issued",
  "access.renewed",
  "access.ending",
  "access.revoked",
  "access.failed",
  "audit.exported",
] as const;

export type AuditAction = (typeof auditActions)[number];

export interface AuditEvent {
  at: Date;
  /** A user name; `client` for a terminal that nobody has approved; `system`. */
  actor: string;
  action: AuditAction;
  address?: string;
  /** The id of the object. */
  subject?: string;
  data?: Record<string, unknown>;
}

/** Events that anyone can cause any number of times without signing in. */
export type CountedAction = "challenge.created" | "challenge.wrong_verifier";

/**
 * How many addresses are distinguished, in memory and then in the log. The others are counted together, without an
 * address.
 */
const addressesInMemory = 1000;
const addressesWritten = 10;

/**
 * Counts unauthenticated events, so that strangers cannot fill the audit log: `flush` writes a row for each of the
 * busiest addresses and one for all others, whatever their number.
 */
export class EventCounts {
  #counts = new Map<CountedAction, Map<string | null, number>>();

  count(action: CountedAction, address: string, times = 1): void {
    const ofAction = this.#counts.get(action) ?? new Map<string | null, number>();
    this.#counts.set(action, ofAction);
    const scope = addressScope(address);
    const key = ofAction.has(scope) || ofAction.size < addressesInMemory ? scope : null;
    ofAction.set(key, (ofAction.get(key) ?? 0) + times);
  }

  /** Writes the counts since the last flush. If that fails, they are kept for the next one. */
  async flush(db: Database, at: Date): Promise<void> {
    const counts = this.#counts;
    this.#counts = new Map();
    const events = [...counts].flatMap(([action, ofAction]) =>
      topOf(ofAction).map(([address, count]) => ({
        at,
        action,
        actor: "client",
        data: { count },
        address: address ?? undefined,
      })),
    );
    if (events.length === 0) return;
    try {
      await db.insert(auditLog).values(events);
    } catch (error) {
      for (const { action, address, data } of events) this.count(action, address ?? "", data.count);
      throw error;
    }
  }
}

function topOf(counts: Map<string | null, number>): [address: string | null, count: number][] {
  const named = [...counts]
    .filter((entry): entry is [string, number] => entry[0] !== null && entry[0] !== "unknown")
    .sort(([, a], [, b]) => b - a)
    .slice(0, addressesWritten);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const others = total - named.reduce((sum, [, count]) => sum + count, 0);
  return others > 0 ? [...named, [null, others]] : named;
}

/** Appends to the audit log, in the transaction of the event. */
export async function audit(db: Database | Transaction, event: AuditEvent): Promise<void> {
  await db.insert(auditLog).values(event);
  wakeWorkersAfter(db, event.action);
}
