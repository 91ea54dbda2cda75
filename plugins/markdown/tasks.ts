import { and, asc, eq, isNotNull } from "drizzle-orm";
import type { Context } from "../../core/context.ts";
import type { DocumentTask } from "../../core/plugin.ts";
import { task } from "../../drizzle/schema/index.ts";
import { align, type KnownTask } from "./align.ts";
import { readContent } from "./content.ts";
import { parseTasks, type WrittenTask } from "./parse.ts";

/**
 * Returns the tasks in the text of a document with their existing ids, and the deleted tasks if there are known ones.
 * `cursor` is the version of the text: at the same version, nothing has changed.
 */
export async function tasksSince(
  context: Context,
  documentId: number,
  cursor: string | undefined,
): Promise<{ tasks: DocumentTask[]; cursor: string; complete: true }> {
  const content = await readContent(context, documentId);
  const now = String(content?.version ?? 0);
  if (now === cursor) return { tasks: [], cursor: now, complete: true };
  const known = await knownTasks(context, documentId);
  const { tasks, isCut } = parseTasks(content?.text ?? "", context.config.domain);
  return { tasks: identify(known, tasks, isCut), cursor: now, complete: true };
}

/**
 * The written tasks with ids from `known` or new ones, followed by the deleted tasks of `known`. Of a text that `isCut`, none
 * is known to be deleted.
 */
export function identify(
  known: readonly KnownTask[],
  written: readonly WrittenTask[],
  isCut = false,
): DocumentTask[] {
  const ids = align(known, written);
  const present = written.map(({ assignees, ...words }, at) => ({
    ...words,
    assignees,
    externalId: ids[at] ?? crypto.randomUUID(),
    // The first person named is the owner.
    ...(assignees[0] === undefined ? {} : { owner: assignees[0] }),
  }));
  const gone = known
    .filter(({ externalId, deleted }) => !isCut && !deleted && !ids.includes(externalId))
    .map(({ externalId, description, status }) => ({
      externalId,
      description,
      status: status as DocumentTask["status"],
      assignees: [],
      deleted: true,
    }));
  return [...present, ...gone];
}

/** In the order in which they were first found. */
async function knownTasks({ db }: Context, documentId: number): Promise<KnownTask[]> {
  const { externalId, description, status, deletedAt } = task;
  const rows = await db
    .select({ externalId, description, status, deletedAt })
    .from(task)
    .where(and(eq(task.documentId, documentId), isNotNull(task.externalId)))
    .orderBy(asc(task.id));
  return rows.flatMap(({ externalId, deletedAt, ...row }) =>
    externalId === null ? [] : [{ ...row, externalId, deleted: deletedAt !== null }],
  );
}
