import { InvalidInput } from "../../platform/errors.ts";
import { parseInstant } from "../../platform/instant.ts";
import { nameLength, parseProse, parseText } from "../../platform/text.ts";
import { parseUserName } from "../auth/user/field.ts";
import type { TaskState, TaskStatus } from "../incident/task/status.ts";
import { sameContent } from "../incident/task/write.ts";
import { readItem } from "../plugin/items.ts";
import { type DocumentTask, documentTask } from "../plugin/methods.ts";

/** A task in its document. Addresses are canonical, unique and sorted. */
export interface FoundTask {
  externalId: string;
  description: string;
  status: TaskStatus;
  creator: string | null;
  owner: string | null;
  assignees: string[];
  /** Null: the document does not say. */
  resolveBy: Date | null;
  /** It is no longer in the document. */
  deleted: boolean;
}

/** A task of ours that was found in a document before. */
export interface KnownTask extends TaskState {
  externalId: string;
  description: string;
  owner: string | null;
  assignees: string[];
  resolveBy: Date;
  /** A tombstone. */
  deleted: boolean;
}

/** What to do about a task. */
export type TaskStep<K extends KnownTask> =
  | { kind: "create"; found: FoundTask }
  | { kind: "change" | "restore"; known: K; next: NextTask }
  | { kind: "delete"; known: K };

type NextTask = Pick<KnownTask, "description" | "owner" | "assignees" | "resolveBy" | "status">;

/**
 * Parses a task that a plugin has found. A due date lasts until the end of that day in the time zone.
 * @throws InvalidInput when it cannot be stored
 */
export function readTask(
  item: DocumentTask,
  { domain, timezone }: { domain?: string; timezone: string },
): FoundTask {
  const { externalId, description, status, creator, owner, assignees, resolveBy, deleted = false } = item;
  const user = (field: string, name: string) => parseUserName(field, name, domain);
  return {
    externalId: parseText("external_id", externalId, nameLength),
    description: parseProse("description", description),
    status,
    creator: creator === undefined ? null : user("creator", creator),
    owner: owner === undefined ? null : user("owner", owner),
    assignees: [...new Set(assignees.map((name) => user("assignees", name)))].sort(),
    resolveBy: resolveBy === undefined ? null : dueTime(resolveBy, timezone),
    deleted,
  };
}

function dueTime(text: string, timezone: string): Date {
  if (text.includes("T")) return parseInstant("resolve_by", text);
  const day = parseInstant("resolve_by", `${text}T00:00:00Z`).toISOString().slice(0, 10);
  const next = Temporal.PlainDate.from(day).add({ days: 1 }).toZonedDateTime(timezone);
  // West of Greenwich, the last day of 9999 ends after the last valid instant.
  return parseInstant("resolve_by", new Date(next.epochMilliseconds - 1).toISOString());
}

/**
 * Returns the changes that make our tasks match the document. `found` may be a part of its tasks. If a task occurs
 * several times, the last one counts. A missing due date leaves ours unchanged.
 */
export function taskSteps<K extends KnownTask>(
  known: readonly K[],
  found: readonly FoundTask[],
): TaskStep<K>[] {
  const ours = new Map(known.map((task) => [task.externalId, task]));
  const theirs = new Map(found.map((task) => [task.externalId, task]));
  return [...theirs.values()].flatMap((task): TaskStep<K>[] => {
    const before = ours.get(task.externalId);
    if (!before) return task.deleted ? [] : [{ kind: "create", found: task }];
    if (task.deleted) return before.deleted ? [] : [{ kind: "delete", known: before }];
    const { description, owner, assignees, status } = task;
    const next = { description, owner, assignees, status, resolveBy: task.resolveBy ?? before.resolveBy };
    if (before.deleted) return [{ kind: "restore", known: before, next }];
    const same = sameContent(before, next) && before.status === next.status;
    return same ? [] : [{ kind: "change", known: before, next }];
  });
}

/** Returns the readable tasks of an answer. `fault` is called for the others. */
export function readTasks(
  items: readonly unknown[],
  settings: { domain?: string; timezone: string },
  fault: (name: string, reason: string) => void,
): FoundTask[] {
  return items.flatMap((item, at) => {
    const read = readItem(documentTask, item);
    if ("fault" in read) {
      fault(read.externalId ?? `number ${at + 1}`, read.fault);
      return [];
    }
    try {
      return [readTask(read.item, settings)];
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      fault(read.item.externalId, error.detail);
      return [];
    }
  });
}
