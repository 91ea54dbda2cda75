import { and, asc, eq, gt, inArray, isNotNull, ne, notInArray, or, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { document, documentContent, hasNewText, incident, task } from "../../drizzle/schema/index.ts";
import type { Clock } from "../../platform/clock.ts";
import { NotFound } from "../../platform/errors.ts";
import { everybody, makeAsNew } from "../catalog/person/as_new.ts";
import { ownTextSlug, postmortemType } from "../incident/document/texts.ts";
import { lockIncident } from "../incident/incident/lock.ts";
import { defaultResolveBy } from "../incident/task/create.ts";
import { individualsOf } from "../incident/task/people.ts";
import { transition } from "../incident/task/status.ts";
import { taskColumns } from "../incident/task/task.ts";
import { type Change, insertTask, recordTaskEvent, sameContent, writeTask } from "../incident/task/write.ts";
import { type FoundTask, type KnownTask, type TaskStep, taskSteps } from "./task_changes.ts";
import type { TaskNotice } from "./task_notice.ts";

const { id, name, resourceType, resourceId, weblink, pluginSlug, taskCursor } = document;
const columns = { id, name, resourceType, resourceId, weblink, taskCursor };

/** A document of an incident, and up to where its tasks are known. */
export interface TaskPlace extends Pick<typeof document.$inferSelect, keyof typeof columns> {
  pluginSlug: string;
  incidentId: number;
}

/** The cursor that the plugin of our own texts would return. */
const ownCursor = sql`coalesce(${documentContent.version}, 0)::text`;

/** Selects documents by plugin: of this one, or of none of these. */
export type PluginFilter = { slug: string } | { noneOf: readonly string[] };

/**
 * Whether the tasks of a document are kept. After the closing, only those of a post-mortem in our database are: it is cheap
 * to see that such a text has not changed, and a plugin would be called for each incident that ever was.
 */
const areKept = (
  status: string,
  { pluginSlug, resourceType }: { pluginSlug: string; resourceType: string },
) => status !== "Closed" || (pluginSlug === ownTextSlug && resourceType === postmortemType);

/**
 * Returns documents whose tasks may have changed, in order of their ids: those of Active and Stable incidents, and all
 * post-mortems in our database. If the text is there, unchanged documents are left out.
 */
export async function pageOfTaskPlaces(
  db: Pick<Database, "select">,
  filter: PluginFilter,
  afterId: number,
  limit: number,
): Promise<TaskPlace[]> {
  const changed = or(ne(pluginSlug, ownTextSlug), sql`${taskCursor} is distinct from ${ownCursor}`);
  // An array, or PostgreSQL walks all documents because it expects to find enough changed ones soon.
  const going = sql`array(select ${incident.id} from ${incident} where ${incident.status} in ('Active', 'Stable'))`;
  const reviews = sql`array(select d.id from ${document} d where ${hasNewText("d")} and d.id > ${afterId}
    order by d.id limit ${limit})`;
  const isGoing = sql`${document.incidentId} = any(${going})`;
  const isOwn = "slug" in filter && filter.slug === ownTextSlug;
  const rows = await db
    .select({ ...columns, pluginSlug, incidentId: document.incidentId })
    .from(document)
    .leftJoin(documentContent, eq(documentContent.documentId, document.id))
    .where(
      and(
        gt(id, afterId),
        isOwn ? or(isGoing, sql`${id} = any(${reviews})`) : isGoing,
        isNotNull(pluginSlug),
        "slug" in filter ? eq(pluginSlug, filter.slug) : notInArray(pluginSlug, [...filter.noneOf]),
        isNotNull(resourceId),
        changed,
      ),
    )
    .orderBy(asc(id))
    .limit(limit);
  return rows.flatMap(({ pluginSlug, incidentId, ...row }) =>
    pluginSlug === null || incidentId === null ? [] : [{ ...row, pluginSlug, incidentId }],
  );
}

type OurTask = KnownTask & { id: number; incidentId: number; version: number; reminders: boolean };

/**
 * Makes our tasks of a document match those found in it, each with an event on the timeline, and records up to where
 * they are known.
 *
 * @returns the incident's name and the notices to send; undefined if nothing was done, because the incident was closed or
 * another run has come further meanwhile
 */
export async function keepTasks(
  tx: Transaction,
  place: TaskPlace,
  { found, cursor, clock }: { found: readonly FoundTask[]; cursor: string; clock: Clock },
): Promise<{ incident: string; notices: TaskNotice[] } | undefined> {
  const { incidentId } = place;
  const locked = await lockIncident(tx, "worker", incidentId).catch((error: unknown) => {
    if (error instanceof NotFound) return undefined;
    throw error;
  });
  if (!locked) return undefined;
  const at = clock.now();
  const [held] = await tx
    .select({ resourceType })
    .from(document)
    .where(
      and(
        eq(id, place.id),
        eq(document.incidentId, incidentId),
        sql`${taskCursor} is not distinct from ${place.taskCursor}::text`,
      ),
    )
    .for("no key update");
  if (!held || !areKept(locked.status, { ...held, pluginSlug: place.pluginSlug })) return undefined;
  const known = await knownTasks(tx, place.id, found);
  const steps = taskSteps(known, found);
  // All at once, so that two that create the same people cannot deadlock.
  const named = await individualsOf(tx, steps.flatMap(peopleIn), at);
  // A document's author may name anyone in it.
  if (locked.visibility === "Open") await makeAsNew(tx, everybody, [...named.values()], at);
  const notices: TaskNotice[] = [];
  for (const step of steps) notices.push(await take(tx, place, held.resourceType, step, at));
  if (steps.length > 0 || cursor !== place.taskCursor)
    await tx.update(document).set({ taskCursor: cursor, taskSyncedAt: at }).where(eq(id, place.id));
  return { incident: locked.name, notices };
}

async function knownTasks(
  tx: Transaction,
  documentId: number,
  found: readonly FoundTask[],
): Promise<OurTask[]> {
  const ids = found.map(({ externalId }) => externalId);
  if (ids.length === 0) return [];
  const rows = await tx
    .select({ ...taskColumns, deletedAt: task.deletedAt })
    .from(task)
    .where(and(eq(task.documentId, documentId), inArray(task.externalId, ids)))
    // So that nobody else changes them before we are done.
    .for("no key update", { of: task });
  return rows.map(({ deletedAt, owner, assignees, externalId, ...row }) => ({
    ...row,
    externalId: externalId ?? "",
    owner: owner?.email ?? null,
    assignees: assignees.map(({ email }) => email).sort(),
    deleted: deletedAt !== null,
  }));
}

function peopleIn(step: TaskStep<OurTask>): string[] {
  if (step.kind === "delete") return [];
  const { owner, assignees } = step.kind === "create" ? step.found : step.next;
  const creator = step.kind === "create" ? step.found.creator : null;
  return [owner, creator, ...assignees].filter((email) => email !== null);
}

async function take(
  tx: Transaction,
  place: TaskPlace,
  resourceType: string,
  step: TaskStep<OurTask>,
  at: Date,
): Promise<TaskNotice> {
  const change: Change = { at, actor: "worker", source: "incident-task-sync" };
  if (step.kind === "create") {
    const { deleted, resolveBy, ...found } = step.found;
    const row = { ...found, resolveBy: resolveBy ?? defaultResolveBy(at, resourceType) };
    const taskId = await insertTask(
      tx,
      { ...row, incidentId: place.incidentId, documentId: place.id, reminders: true },
      change,
    );
    return { ...row, kind: "task.created", taskId, version: 1 };
  }
  const { known } = step;
  const version = known.version + 1;
  if (step.kind === "delete") {
    await setDeleted(tx, known, at, at);
    await recordTaskEvent(tx, "task.deleted", known, change);
    return { ...known, kind: "task.deleted", taskId: known.id, version };
  }
  const next = { ...step.next, reminders: known.reminders };
  if (step.kind === "change") {
    await writeTask(tx, known, next, change);
    const { kind = "task.updated" } = transition(known, next.status, at);
    return { ...next, kind, taskId: known.id, version };
  }
  await setDeleted(tx, known, null, at);
  await recordTaskEvent(tx, "task.created", { ...known, description: next.description }, change);
  if (!sameContent(known, next) || known.status !== next.status)
    await writeTask(tx, { ...known, version }, next, change);
  return { ...next, kind: "task.created", taskId: known.id, version };
}

async function setDeleted(
  tx: Transaction,
  { id: taskId, version }: OurTask,
  deletedAt: Date | null,
  at: Date,
): Promise<void> {
  await tx
    .update(task)
    .set({ deletedAt, version: version + 1, updatedAt: at })
    .where(eq(task.id, taskId));
}
