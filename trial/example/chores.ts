import { addressOf } from "./cast.ts";
import type { ExampleTask } from "./example.ts";
import type { Scene } from "./scene.ts";
import { hoursAfter, hoursBetween } from "./time.ts";

/** A task in the text of a document. */
export interface Found {
  text: string;
  who: string;
  /** The day's end; none where the document names no day. */
  due?: Date;
  doneAt: Date | null;
}

interface Place {
  /** Of the document. */
  id: number;
  at: Date;
}

/** A task as incident-task-sync has found it. */
export function foundTask(
  scene: Scene,
  line: Found,
  { id, at, externalId }: Place & { externalId: string },
): ExampleTask {
  const { text: description, who, due, doneAt } = line;
  return told(scene, "worker", {
    ...blank(scene, description, at),
    status: doneAt ? "Resolved" : "Open",
    assigneeIds: [scene.world.personId(who)],
    resolveBy: due ?? hoursAfter(at, 24),
    resolvedAt: doneAt,
    ...{ documentId: id, externalId },
    ...(doneAt && { updatedAt: doneAt, version: 2 }),
  });
}

/** Of some reviews one task was taken out again. */
export function goneTask(scene: Scene, { id, at }: Place): ExampleTask[] {
  const { closedAt, random } = scene;
  if (!closedAt || at < (scene.stableAt ?? at) || at >= closedAt || !random.chance(0.2)) return [];
  const deletedAt = hoursAfter(at, hoursBetween(at, closedAt) / 2);
  const row = {
    ...blank(scene, "Ask again in a month whether it has helped", at),
    ...{ resolveBy: hoursAfter(at, 24 * 30), documentId: id, externalId: `${id}-gone` },
    ...{ deletedAt, updatedAt: deletedAt, version: 2 },
  };
  return [told(scene, "worker", row)];
}

/** Tasks that somebody wrote by hand. */
export function writtenTasks(scene: Scene): ExampleTask[] {
  const { world, reportedAt, cast, random, scenario } = scene;
  return (scenario.tasks ?? []).map((task) => {
    const { text, who, due, quiet = false } = task;
    const status: ExampleTask["status"] = task.status ?? "Open";
    const createdAt = hoursAfter(reportedAt, random.between(0.5, 0.9));
    const resolveBy = hoursAfter(world.now, due);
    const changedAt = hoursAfter(createdAt, hoursBetween(createdAt, resolveBy) * 0.7);
    const author = cast.inRole("commander", createdAt) ?? scenario.reporter;
    // Whoever is a day late has heard of it, and hears of it every day.
    const heard = status === "Open" && due < -24 && !quiet;
    const lastHeard = hoursAfter(resolveBy, 0.5 + 24 * Math.floor((-due - 1) / 24));
    return told(scene, addressOf(author), {
      ...blank(scene, text, createdAt),
      ...{ status, creatorId: world.personId(author), assigneeIds: who.map(world.personId), resolveBy },
      ...{ reminders: !quiet, lastReminderAt: heard ? lastHeard : null },
      ...(status !== "Open" && { updatedAt: changedAt, version: 2 }),
      resolvedAt: status === "Resolved" ? changedAt : null,
    });
  });
}

function blank({ world, id: incidentId }: Scene, description: string, at: Date): ExampleTask {
  return {
    ...{ id: world.next("task"), incidentId, description, status: "Open", creatorId: null, assigneeIds: [] },
    ...{ resolveBy: at, resolvedAt: null, documentId: null, externalId: null, deletedAt: null },
    ...{ reminders: true, lastReminderAt: null, createdAt: at, updatedAt: at, version: 1 },
  };
}

/** With what the timeline says of it. */
function told({ at, tell }: Scene, actor: string, row: ExampleTask): ExampleTask {
  const { id, description, status, deletedAt, createdAt, updatedAt } = row;
  const say = (when: Date, kind: string, what: string) =>
    at(when, (date) => {
      const source = row.documentId === null ? "core" : "incident-task-sync";
      const data = { task_id: id };
      tell({ at: date, actor, source, kind, description: `${what}: ${description}`, data });
    });
  say(createdAt, "task.created", "Task");
  if (status === "Resolved") say(updatedAt, "task.resolved", "Task done");
  if (status === "Cancelled") say(updatedAt, "task.cancelled", "Task cancelled");
  if (deletedAt) say(deletedAt, "task.deleted", "Task taken out of its document");
  return row;
}
