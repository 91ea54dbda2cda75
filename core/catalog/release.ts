import { and, asc, eq, inArray, isNotNull, notExists, sql } from "drizzle-orm";
import { union } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import {
  definition,
  definitionTerm,
  participantGroupMember,
  task,
  taskAssignee,
} from "../../drizzle/schema/index.ts";
import { audit } from "../audit.ts";
import type { Deletion } from "./resource.ts";

// What names a record and is no reason to keep it when an admin deletes it.

/**
 * Takes an individual out of the tombstones of tasks, which nobody sees. Should such a task come back, its document says
 * anew whose it is; who wrote it first is then not known any more.
 */
export async function releaseFromTombstones(tx: Transaction, id: number): Promise<void> {
  const theirs = union(
    tx.select({ id: task.id }).from(task).where(eq(task.creatorId, id)),
    tx.select({ id: task.id }).from(task).where(eq(task.ownerId, id)),
    tx.select({ id: taskAssignee.taskId }).from(taskAssignee).where(eq(taskAssignee.individualId, id)),
  );
  const gone = await tx
    .select({ id: task.id })
    .from(task)
    .where(and(inArray(task.id, theirs), isNotNull(task.deletedAt)))
    .orderBy(asc(task.id))
    // The tasks before the individual: incident-task-sync holds a task that comes back, and then names its people.
    .for("no key update");
  const ids = gone.map((row) => row.id);
  await tx
    .update(task)
    .set({ creatorId: sql`nullif(${task.creatorId}, ${id})`, ownerId: sql`nullif(${task.ownerId}, ${id})` })
    .where(inArray(task.id, ids));
  await tx
    .delete(taskAssignee)
    .where(and(inArray(taskAssignee.taskId, ids), eq(taskAssignee.individualId, id)));
}

/** Takes an individual or a team off the mailing lists of incidents. */
export async function releaseFromLists(
  tx: Transaction,
  who: "individualId" | "teamId",
  id: number,
): Promise<void> {
  await tx.delete(participantGroupMember).where(eq(participantGroupMember[who], id));
}

/**
 * Takes a term out of the definitions that came with it from its source, where nobody can change them, and deletes those
 * that define no other one. Those that people wrote stay in the way: they are theirs to change. The caller holds the
 * source and the term.
 */
export async function releaseFromDefinitions(
  tx: Transaction,
  { id, source, told }: { id: number; source: string; told: Deletion },
): Promise<void> {
  const { termId, definitionId } = definitionTerm;
  const its = tx.select({ id: definitionId }).from(definitionTerm).where(eq(termId, id));
  const held = await tx
    .select({ id: definition.id })
    .from(definition)
    .where(and(eq(definition.source, source), inArray(definition.id, its)))
    .orderBy(asc(definition.id))
    // A definition before what it defines, as whoever deletes one.
    .for("update");
  const ids = held.map((row) => row.id);
  await tx.delete(definitionTerm).where(and(eq(termId, id), inArray(definitionId, ids)));
  const uses = tx.select({ id: termId }).from(definitionTerm).where(eq(definitionId, definition.id));
  const removed = await tx
    .delete(definition)
    .where(and(inArray(definition.id, ids), notExists(uses)))
    .returning({ id: definition.id });
  for (const one of removed)
    await audit(tx, { ...told, action: "definition.deleted", subject: String(one.id) });
}
