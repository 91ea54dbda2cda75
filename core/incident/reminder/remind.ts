import { and, asc, eq, gt, inArray, isNull, max, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import {
  delivery,
  incident,
  incidentPriority,
  individual,
  participant,
  participantRole,
  statusReport,
  statusReportReminder,
} from "../../../drizzle/schema/index.ts";
import { durationText } from "../../../platform/duration.ts";
import { literally } from "../../../platform/markdown.ts";
import { type Person, personColumns } from "../../catalog/person/person.ts";
import { type DeliveryClaim, deliver, type Outgoing } from "../../outbox/deliver.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { Message } from "../../plugin/facts.ts";
import type { Fault } from "../../schedule/runs.ts";
import type { TaskName } from "../../schedule/tasks.ts";
import { recordEvent } from "../timeline/event.ts";

export const reportReminder = "incident-status-report-reminder" satisfies TaskName;
const task = reportReminder;

/** The ids of Active incidents after `last`. */
export async function activeIncidents(
  db: Pick<Database, "select">,
  last: number,
  limit: number,
): Promise<number[]> {
  const rows = await db
    .select({ id: incident.id })
    .from(incident)
    .where(and(eq(incident.status, "Active"), gt(incident.id, last)))
    .orderBy(asc(incident.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/**
 * Enqueues the due reminders of these incidents and records them: a recorded one is never sent again. The timeline has them
 * once they are sent.
 */
export async function remind(
  tx: Transaction,
  context: Pick<AppContext, "clock" | "plugins" | "config">,
  ids: readonly number[],
): Promise<{ done: number; skipped: number; faults: Fault[] }> {
  const active = await readDue(tx, ids);
  const now = context.clock.now();
  const due = active.flatMap((row) => {
    const last = row.reminded ? { k: row.reminded, at: row.remindedAt } : undefined;
    const k = dueReminder(row.anchor, row.hours, now, last);
    return k > 0 ? [{ ...row, k }] : [];
  });
  const people = await responsible(
    tx,
    due.map((row) => row.incident.id),
  );
  const wanted = new Map<Outgoing, (typeof due)[number]>(
    due.map((row) => {
      const { id } = row.incident;
      const person = people.get(id);
      const what = `incident-${id}-${row.anchor.getTime()}-${row.k}`;
      // With the role: somebody who gave it up, so that their reminder was dropped, may have it again.
      const whom = person ? `individual-${person.id}-role-${person.roleId}` : "conversation";
      const message = reminderMessage(row, { now, publicUrl: context.config.publicUrl });
      const to = { incidentId: id, individualId: person?.id, topic: `incident-${id}` };
      return [{ key: { task, what, whom }, ...to, message }, row];
    }),
  );
  const { reached, unreachable } = await deliver(tx, context, [...wanted.keys()]);
  let done = 0;
  for (const outgoing of reached) {
    const { incident: of, anchor, k } = wanted.get(outgoing)!;
    const noted = await tx
      .insert(statusReportReminder)
      .values({ incidentId: of.id, anchor, k, remindedAt: now })
      .onConflictDoNothing()
      .returning({ k: statusReportReminder.k });
    if (noted.length === 0) continue;
    done += 1;
  }
  const faults = unreachable.map((outgoing) => ({
    item: wanted.get(outgoing)!.incident.name,
    reason: "It has no open conversation to send a reminder to",
  }));
  return { done, skipped: ids.length - done - faults.length, faults };
}

/**
 * Writes a queued reminder as of now, unless it is no longer true: a report was written, the incident is no longer Active,
 * or somebody else writes its reports.
 */
export async function currentReminder(
  { db, clock, config }: Pick<AppContext, "db" | "clock" | "config">,
  { incidentId, individualId }: { incidentId: number; individualId: number | null },
): Promise<{ message: Message; about: number[] } | { obsolete: string }> {
  const [row] = await readReports(db, [incidentId]);
  const now = clock.now();
  if (row?.status !== "Active") return { obsolete: "Its incident is no longer Active" };
  if (dueReminder(row.anchor, row.hours, now) === 0) return { obsolete: "No status report is due any more" };
  const person = (await responsible(db, [incidentId])).get(incidentId);
  if (individualId !== null && person?.id !== individualId) {
    // Not recorded as sent, so that the next slot reminds the person who writes them now.
    const { incidentId: of, anchor, k } = statusReportReminder;
    const isLast = and(eq(of, incidentId), eq(anchor, row.anchor), eq(k, row.reminded ?? 0));
    await db.delete(statusReportReminder).where(isLast);
    return { obsolete: "Its recipient no longer writes the status reports" };
  }
  return { message: reminderMessage(row, { now, publicUrl: config.publicUrl }), about: [incidentId] };
}

/**
 * Records on the timeline, in the transaction that ends its delivery, that somebody was reminded. Of the deliveries of a
 * reminder through several plugins, or to several recipients, the first one that was sent counts.
 */
export async function recordReminded(
  tx: Transaction,
  {
    key,
    topic,
    incidentId,
    individualId,
  }: Pick<DeliveryClaim, "key" | "topic" | "incidentId" | "individualId">,
  at: Date,
): Promise<void> {
  const reminder = key.split("/").slice(0, 3);
  const ofReminder = and(
    eq(delivery.topic, topic!),
    sql`starts_with(${delivery.key}, ${`${reminder.join("/")}/`})`,
  );
  const isSent = and(ofReminder, eq(delivery.state, "Done"), isNull(delivery.error));
  if ((await tx.$count(delivery, isSent)) > 1) return;
  const [person] =
    individualId === null
      ? []
      : await tx.select({ name: individual.name }).from(individual).where(eq(individual.id, individualId));
  await recordEvent(tx, {
    incidentId,
    at,
    actor: "worker",
    source: task,
    kind: "reminder.sent",
    description: `${person?.name ?? "Everybody"} was reminded to write a status report`,
    data: {
      k: Number(reminder[1]!.split("-").at(-1)),
      ...(individualId !== null && { individual_id: individualId }),
    },
  });
}

/**
 * Locks the incidents, so that none becomes Stable during its reminder, and then reads them in a separate statement,
 * which sees a report that was just being written. One that is reopened in between is not locked, and is left to the
 * next run.
 */
async function readDue(tx: Transaction, ids: readonly number[]) {
  const active = and(inArray(incident.id, [...ids]), eq(incident.status, "Active"));
  const locked = await tx
    .select({ id: incident.id })
    .from(incident)
    .where(active)
    .orderBy(asc(incident.id))
    .for("no key update");
  return readReports(
    tx,
    locked.map(({ id }) => id),
  );
}

type Reader = Pick<Database, "select">;

/** Reads when incidents were last reported on, and when a report was last asked for. */
async function readReports(tx: Reader, ids: readonly number[]) {
  const lastReport = tx
    .select({ at: max(statusReport.createdAt) })
    .from(statusReport)
    .where(eq(statusReport.incidentId, incident.id));
  const anchor: SQL<Date> = sql<Date>`coalesce((${lastReport}), ${incident.reportedAt})`.mapWith(
    incident.reportedAt,
  );
  const { incidentId, anchor: of, k, remindedAt } = statusReportReminder;
  const last = (column: typeof k | typeof remindedAt) =>
    tx
      .select({ last: max(column) })
      .from(statusReportReminder)
      .where(and(eq(incidentId, incident.id), eq(of, anchor)));
  return tx
    .select({
      incident: { id: incident.id, name: incident.name, title: incident.title },
      status: incident.status,
      priority: incidentPriority.name,
      hours: incidentPriority.reminderHours,
      anchor,
      hasReport: sql<boolean>`(${lastReport}) is not null`,
      reminded: sql<number | null>`(${last(k)})`,
      remindedAt: sql<Date>`(${last(remindedAt)})`.mapWith(remindedAt),
    })
    .from(incident)
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(inArray(incident.id, [...ids]))
    .orderBy(asc(incident.id));
}

/** Returns who writes each incident's reports: its commander, or else a liaison, if there is one. */
async function responsible(
  tx: Reader,
  ids: readonly number[],
): Promise<Map<number, Person & { roleId: number }>> {
  const { id, role, incidentId, renouncedAt } = participantRole;
  const rows = await tx
    .select({ incidentId, roleId: id, person: personColumns })
    .from(participantRole)
    .innerJoin(participant, eq(participant.id, participantRole.participantId))
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(
      and(
        inArray(incidentId, [...ids]),
        inArray(role, ["commander", "liaison"]),
        isNull(renouncedAt),
        isNull(participant.leftAt),
      ),
    )
    // The last row of each incident wins: its commander, or the longest-serving liaison.
    .orderBy(sql`${role} desc`, sql`${participantRole.id} desc`);
  return new Map(rows.map(({ incidentId, roleId, person }) => [incidentId, { ...person, roleId }]));
}

/** The last reminder since the last report, or since the incident was reported if there is no report. */
export interface Reminded {
  k: number;
  at: Date;
}

/**
 * Returns which reminder is due: the k-th is due k · N hours after the anchor, 0 means none. Missed reminders between the
 * last one sent and this one are skipped. If N has changed since the last one, its time counts and not its number: the time
 * that it covered is not due again, and later ones continue its numbers, because no number is used twice.
 */
export function dueReminder(anchor: Date, hours: number, now: Date, last?: Reminded): number {
  const period = hours * 3_600_000;
  const k = Math.max(0, Math.floor((now.getTime() - anchor.getTime()) / period));
  if (!last) return k;
  return anchor.getTime() + k * period > last.at.getTime() ? Math.max(k, last.k + 1) : 0;
}

export interface ReportDue {
  incident: { id: number; name: string; title: string };
  priority: string;
  /** When the last report was written, or the incident was reported if there is none. */
  anchor: Date;
  hasReport: boolean;
}

/** Asks for a status report, and explains how to write one. */
export function reminderMessage(
  { incident: { id, name, title }, priority, anchor, hasReport }: ReportDue,
  { now, publicUrl }: { now: Date; publicUrl: string },
): Message {
  const since = durationText(anchor, now);
  const lines = [
    `**${name}: ${literally(title)}** (priority ${literally(priority)}) is Active, and ${
      hasReport
        ? `its last status report is ${since} old.`
        : `has had no status report since it was reported ${since} ago.`
    }`,
    "Report the current state: what is happening (conditions), what is being done (actions), what is missing (needs):",
    `POST ${publicUrl}/incidents/${id}/reports\n{"conditions": "...", "actions": "...", "needs": "..."}`,
    `${publicUrl}/incidents/${id}`,
  ];
  return { subject: `${name}: a status report is due`, text: lines.join("\n\n") };
}
