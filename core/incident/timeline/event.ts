import { sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { notifyAfterCommit } from "../../../drizzle/connection/notify.ts";
import { event, incident } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { AuditAction } from "../../audit.ts";
import { wakeWorkersAfter } from "../../wake.ts";

export type EventKind =
  | "incident.reported"
  | "incident.updated"
  | "incident.stable"
  | "incident.closed"
  | "incident.reopened"
  | "incident.linked"
  | "incident.unlinked"
  | "incident.affects"
  | "participant.joined"
  | "participant.left"
  | "participant.deleted"
  | "role.assumed"
  | "role.renounced"
  | "report.written"
  | "note"
  | "message.sent"
  | "corrected"
  | "withdrawn"
  | "redacted"
  | "task.created"
  | "task.updated"
  | "task.resolved"
  | "task.cancelled"
  | "task.reopened"
  | "task.deleted"
  | "document.created"
  | "document.updated"
  | "document.redacted"
  | "document.deleted"
  | "document.proposed"
  | "postmortem.drafted"
  | "team.proposed"
  | "conversation.created"
  | "group.created"
  | "step.done"
  | "step.failed"
  | "reminder.sent"
  | Extract<AuditAction, `access.${string}`>;

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

/**
 * The channel of PostgreSQL on which new events are sent after their commit: pairs of an incident and its newest
 * event, `7 102 9 104`.
 */
export const eventChannel = "svc_event";

/** Matches the events of an incident that became Restricted. */
export const becameRestricted = sql`${event.kind} = 'incident.updated'
  and ${event.data} -> 'visibility' ->> 'to' = 'Restricted'`;

/**
 * Appends to an incident's timeline, in the transaction of the change.
 *
 * It locks the incident before it takes the id, until the commit. So the events of one incident are committed in the
 * order of their ids, and a reader that continues with `id > cursor` never misses one. A change that locks other rows
 * before that calls `lockIncident` first, so that two such changes cannot deadlock.
 *
 * @returns the id
 * @throws NotFound when the incident has been deleted in the meantime
 */
export async function recordEvent(db: Database | Transaction, entry: TimelineEvent): Promise<number> {
  const { incidentId, at, actor, kind, description, source = "core", data } = entry;
  // One statement, because others wait for the lock. The id is taken for a row of `locked`: after it was locked.
  const [recorded] = await db.execute<{ id: string }>(sql`
    with locked as materialized (
      select id from ${incident} where id = ${incidentId} for no key update)
    insert into ${event} (incident_id, at, actor, source, kind, description, data)
    select id, ${at.toISOString()}::timestamptz, ${actor}::text, ${source}::text, ${kind}::text,
      ${description}::text, ${JSON.stringify(data)}::jsonb
    from locked returning id`);
  if (!recorded) throw new NotFound("There is no such incident");
  const id = Number(recorded.id);
  notifyAfterCommit(db, eventChannel, incidentId, id);
  wakeWorkersAfter(db, kind);
  return id;
}
