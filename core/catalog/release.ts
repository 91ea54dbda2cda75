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

// References to a record that do not prevent its deletion by an admin.

/**
 * Removes an individual from the tombstones of tasks, which are invisible. If such a task comes back, its document says
 * again who it belongs to, but its original creator is no longer known.
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
    // The tasks before the individual: incident-task-sync locks a returning task before it names its people.
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

/** Removes an individual or a team from the mailing lists of incidents. */
export async function releaseFromLists(
  tx: Transaction,
  who: "individualId" | "teamId",
  id: number,
): Promise<void> {
  await tx.delete(participantGroupMember).where(eq(participantGroupMember[who], id));
}

/**
 * Removes a term from the definitions of its source, which nobody can change, and deletes those that define no other
 * term. Definitions written by people still prevent the deletion, because people can change them. The caller has locked
 * the source and the term.
 */
export async function releaseFromDefinitions(
  tx: Transaction,
  { id, source, deletion }: { id: number; source: string; deletion: Deletion },
): Promise<void> {
  const { termId, definitionId } = definitionTerm;
  const its = tx.select({ id: definitionId }).from(definitionTerm).where(eq(termId, id));
  const held = await tx
    .select({ id: definition.id })
    .from(definition)
    .where(and(eq(definition.source, source), inArray(definition.id, its)))
    .orderBy(asc(definition.id))
    // A definition before the terms it defines, as when a definition is deleted.
    .for("update");
  const ids = held.map((row) => row.id);
  await tx.delete(definitionTerm).where(and(eq(termId, id), inArray(definitionId, ids)));
  const uses = tx.select({ id: termId }).from(definitionTerm).where(eq(definitionId, definition.id));
  const removed = await tx
    .delete(definition)
    .where(and(inArray(definition.id, ids), notExists(uses)))
    .returning({ id: definition.id });
  for (const one of removed)
    await audit(tx, { ...deletion, action: "definition.deleted", subject: String(one.id) });
}
