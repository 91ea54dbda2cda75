import type { Database, Transaction } from "../drizzle/client.ts";
import { notifyAfterCommit } from "../drizzle/connection/notify.ts";

/** The channel on which workers are woken when a lease ends, or may have lost its basis (access/basis.ts). */
export const leaseChannel = "svc_lease";

/** The audited actions and events that can end a lease. The end of a token is sent by `endTokens`. */
const ending: ReadonlySet<string> = new Set([
  "access.ending",
  "access.denied",
  "access.cancelled",
  "access_role.updated",
  // A new token may have fewer groups.
  "challenge.collected",
  "certificate.issued",
  "incident.deleted",
  "incident.closed",
  "incident.updated",
  "participant.left",
]);

/** Wakes the workers after the commit. If the hint is lost, their next poll finds the same. */
export function wakeWorkers(db: Database | Transaction): void {
  notifyAfterCommit(db, leaseChannel, 0, 0);
}

/** Wakes the workers if something was recorded that can end a lease. */
export function wakeWorkersAfter(db: Database | Transaction, recorded: string): void {
  if (ending.has(recorded)) wakeWorkers(db);
}
