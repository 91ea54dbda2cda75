import { asc, inArray } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { individual, taskAssignee } from "../../drizzle/schema/index.ts";
import { nameByAddress } from "../individual/person.ts";

/**
 * The ids of individuals by their canonical addresses. Who is unknown becomes one, called by their address.
 */
export async function individualsOf(
  tx: Transaction,
  emails: readonly string[],
  at: Date,
): Promise<ReadonlyMap<string, number>> {
  // Sorted, so that two that make the same people do not wait for each other.
  const wanted = [...new Set(emails)].sort();
  if (wanted.length === 0) return new Map();
  const known = () =>
    tx
      .select({ email: individual.email, id: individual.id })
      .from(individual)
      .where(inArray(individual.email, wanted))
      .orderBy(asc(individual.email))
      // Not gone before they are named.
      .for("key share");
  const found = await known();
  const ids = new Map(found.map(({ email, id }) => [email, id]));
  const unknown = wanted.filter((email) => !ids.has(email));
  if (unknown.length === 0) return ids;
  const stamps = { listed: false, createdAt: at, updatedAt: at };
  await tx
    .insert(individual)
    .values(unknown.map((email) => ({ ...stamps, name: nameByAddress(email), email })))
    .onConflictDoNothing({ target: individual.email });
  // Also those whom somebody else made meanwhile: theirs is committed, or we would still wait for it.
  return new Map((await known()).map(({ email, id }) => [email, id]));
}

export async function addAssignees(tx: Transaction, taskId: number, individualIds: number[]): Promise<void> {
  if (individualIds.length === 0) return;
  await tx.insert(taskAssignee).values(individualIds.map((individualId) => ({ taskId, individualId })));
}
