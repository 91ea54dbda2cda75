import { and, asc, between, eq, gt, inArray, isNull, lt, lte, or, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { incident, participant, task, taskAssignee } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { openConversations } from "../../outbox/conversations.ts";
import { type DeliveryClaim, deliver, type Outgoing } from "../../outbox/deliver.ts";
import { enqueuedSince } from "../../outbox/enqueued.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { Message } from "../../plugin/facts.ts";
import type { Fault } from "../../schedule/runs.ts";
import type { TaskName } from "../../schedule/tasks.ts";
import { overdueMessage } from "./overdue_message.ts";

const name = "incident-task-reminders" satisfies TaskName;
const daySeconds = 24 * 3600;

/**
 * Matches tasks that need a reminder in this slot. It includes those of which this slot has already sent one: they may
 * have other assignees, and an interrupted run continues.
 */
function isOverdue(slot: Date): SQL | undefined {
  const { lastReminderAt } = task;
  return and(
    isWatched,
    lt(task.resolveBy, slot),
    or(isNull(lastReminderAt), lte(lastReminderAt, after(slot, -daySeconds)), eq(lastReminderAt, slot)),
  );
}

// An array: in a join, PostgreSQL compares each task with each Active incident if it expects few of them.
const isOfActive = sql`${task.incidentId} = any(array(
  select ${incident.id} from ${incident} where ${incident.status} = 'Active'))`;
const isWatched = and(eq(task.status, "Open"), eq(task.reminders, true), isNull(task.deletedAt), isOfActive);

/** For a task joined with its assignees: each of them, or its owner if there are none. */
const personId = sql<number>`coalesce(${taskAssignee.individualId}, ${task.ownerId})`.mapWith(Number);

/** The ids after `last` of people who are assigned to an overdue task, or own one without assignees. */
export async function peopleOverdue(
  db: Pick<Database, "selectDistinct">,
  slot: Date,
  last: number,
  limit: number,
): Promise<number[]> {
  const rows = await db
    .selectDistinct({ id: personId })
    .from(task)
    .leftJoin(taskAssignee, eq(taskAssignee.taskId, task.id))
    .where(and(isOverdue(slot), gt(personId, last)))
    .orderBy(asc(personId))
    .limit(limit);
  return rows.map(({ id }) => id);
}

type Overdue = Awaited<ReturnType<typeof readOverdue>>[number];

/**
 * Enqueues one message with all overdue tasks for each of these people, and records it at the tasks. Tasks of a
 * Restricted incident go only to its participants, in a separate message, so that its delivery can check that.
 */
export async function remindOfTasks(
  tx: Transaction,
  context: Pick<AppContext, "clock" | "plugins" | "config"> & { slot: Date },
  people: readonly number[],
): Promise<{ done: number; skipped: number; faults: Fault[] }> {
  const { slot, plugins, config } = context;
  // Tasks that became overdue after a run of this slot was interrupted are left to the next one: no message of this
  // slot has them.
  const enqueued = await enqueuedSince(
    tx,
    after(slot, -daySeconds),
    { task: name, what: String(slot.getTime()) },
    people,
  );
  const others = people.filter((id) => !enqueued.people.has(id));
  const rows = await readOverdue(tx, slot, others);
  const reachable = await openConversations(tx, plugins, [...new Set(rows.map((row) => row.incident.id))]);
  const faults: Fault[] = [];
  const wanted = new Map<Outgoing, Overdue[]>();
  for (const [individualId, theirs] of Map.groupBy(rows, (row) => row.individualId)) {
    for (const [incidentId, tasks] of messagesOf(theirs)) {
      const whom = `individual-${individualId}`;
      const fault = (reason: string) =>
        faults.push({ item: `individual ${individualId}, ${tasks[0]!.incident.name}`, reason });
      if (tasks.some((row) => row.hidden)) {
        fault("Does not participate in this Restricted incident, so receives no reminders for its tasks");
        continue;
      }
      const by = tasks.find((row) => reachable.has(row.incident.id))?.incident.id;
      if (by === undefined) {
        fault("There is no open conversation to send a reminder to");
        continue;
      }
      const what = [slot.getTime(), ...(incidentId === undefined ? [] : [`incident-${incidentId}`])].join(
        "-",
      );
      const about = [...new Set(tasks.map((row) => row.incident.id))];
      const message = overdueMessage(tasks, config);
      const to = { incidentId: by, individualId, topic: topicOf(individualId, incidentId), occurredAt: slot };
      wanted.set({ key: { task: name, what, whom }, about, ...to, message }, tasks);
    }
  }
  const { reached } = await deliver(tx, context, [...wanted.keys()]);
  const ids = [...new Set(reached.flatMap((outgoing) => wanted.get(outgoing)!.map(({ id }) => id)))];
  await tx.update(task).set({ lastReminderAt: slot }).where(inArray(task.id, ids));
  return { done: reached.length, skipped: enqueued.people.size, faults };
}

/** What a reminder is about: a person's tasks in a Restricted incident, or in all Open ones. */
const topicOf = (individualId: number, incidentId: number | undefined) =>
  [`individual-${individualId}`, ...(incidentId === undefined ? [] : [`incident-${incidentId}`])].join("-");

/**
 * Writes a queued reminder as of now: with the tasks that this person was to be reminded of since the oldest reminder that
 * it replaces that are still overdue.
 */
export async function currentTaskReminder(
  { db, clock, config }: Pick<AppContext, "db" | "clock" | "config">,
  row: Pick<DeliveryClaim, "key" | "incidentId" | "individualId" | "occurredAt" | "queuedAt">,
): Promise<{ message: Message; about: number[] } | { obsolete: string }> {
  const { key, incidentId, individualId, occurredAt, queuedAt } = row;
  const [slot, isRestricted] = key.split("/")[1]!.split("-");
  const tasks = await readTasks(
    db,
    and(
      isWatched,
      lt(task.resolveBy, clock.now()),
      between(task.lastReminderAt, occurredAt ?? new Date(Number(slot)), queuedAt),
      eq(personId, individualId!),
      isRestricted ? eq(incident.id, incidentId) : eq(incident.visibility, "Open"),
    ),
  );
  if (tasks.length === 0) return { obsolete: "Its tasks are no longer overdue, or no longer this person's" };
  return { message: overdueMessage(tasks, config), about: [...new Set(tasks.map((one) => one.incident.id))] };
}

/** Groups tasks into messages: one for all Open incidents, and one for each Restricted incident. */
function messagesOf(rows: readonly Overdue[]): Map<number | undefined, Overdue[]> {
  return Map.groupBy(rows, ({ incident: { id, visibility } }) => (visibility === "Open" ? undefined : id));
}

/**
 * Locks the tasks, so that none is resolved during its reminder, and then reads them in a separate statement, which
 * sees to whom they were just reassigned. A task that comes to these people in between is not locked, and is left to
 * the next slot. A task is returned once for each of its people, the oldest first. Tasks of one incident with the same
 * time are together.
 */
async function readOverdue(tx: Transaction, slot: Date, people: readonly number[]) {
  const theirs = and(isOverdue(slot), inArray(personId, [...people]));
  const locked = await tx
    .select({ id: task.id })
    .from(task)
    .leftJoin(taskAssignee, eq(taskAssignee.taskId, task.id))
    .where(theirs)
    .orderBy(asc(task.id))
    .for("update", { of: task });
  return readTasks(tx, and(theirs, inArray(task.id, [...new Set(locked.map(({ id }) => id))])));
}

/** Returns these tasks, once for each of their people. */
async function readTasks(tx: Pick<Database, "select">, which: SQL | undefined) {
  const takesPart = sql`exists (select from ${participant} where ${participant.incidentId} = ${incident.id}
    and ${participant.individualId} = ${personId} and ${participant.leftAt} is null)`;
  return tx
    .select({
      id: task.id,
      description: task.description,
      resolveBy: task.resolveBy,
      individualId: personId,
      incident: {
        id: incident.id,
        name: incident.name,
        title: incident.title,
        visibility: incident.visibility,
      },
      hidden: sql<boolean>`${incident.visibility} = 'Restricted' and not ${takesPart}`,
    })
    .from(task)
    .innerJoin(incident, eq(incident.id, task.incidentId))
    .leftJoin(taskAssignee, eq(taskAssignee.taskId, task.id))
    .where(which)
    .orderBy(asc(task.resolveBy), asc(incident.id), asc(task.id));
}
