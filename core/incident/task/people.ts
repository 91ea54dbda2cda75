import { and, asc, inArray } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { individual, taskAssignee } from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import { nameByAddress } from "../../catalog/person/person.ts";
import type { Actor } from "../../context.ts";
import { mayKnow } from "../visibility/visibility.ts";

/**
 * Returns the ids of individuals by their canonical addresses. An unknown address becomes an individual with the
 * address as name.
 */
export async function individualsOf(
  tx: Transaction,
  emails: readonly string[],
  at: Date,
): Promise<ReadonlyMap<string, number>> {
  // Sorted, so that two that create the same people cannot deadlock.
  const wanted = [...new Set(emails)].sort();
  if (wanted.length === 0) return new Map();
  const known = () =>
    tx
      .select({ email: individual.email, id: individual.id })
      .from(individual)
      .where(inArray(individual.email, wanted))
      .orderBy(asc(individual.email))
      // So that they are not deleted before they are referenced.
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
  // Includes those whom another transaction created meanwhile: it has committed, or we would still wait for it.
  return new Map((await known()).map(({ email, id }) => [email, id]));
}

/**
 * Checks that the actor knows the people whom they name: otherwise a mistyped address would create a person, who is
 * then reminded. They may always name themselves.
 *
 * @throws InvalidInput naming the field
 */
export async function refuseUnknown(
  tx: Transaction,
  actor: Actor,
  { owner, assignees }: { owner: string | null; assignees: readonly string[] },
): Promise<void> {
  const named = [...new Set([...(owner === null ? [] : [owner]), ...assignees])];
  const others = named.filter((email) => email !== actor.user);
  if (others.length === 0) return;
  const rows = await tx
    .select({ email: individual.email })
    .from(individual)
    .where(and(inArray(individual.email, others), mayKnow(actor)));
  const known = new Set(rows.map(({ email }) => email));
  const unknown = others.find((email) => !known.has(email));
  if (unknown === undefined) return;
  throw new InvalidInput(
    unknown === owner ? "owner" : "assignees",
    `Nobody here has the address ${unknown}: check it, or add the person to the incident first`,
  );
}

/** `ids` are those of `individualsOf`. */
export async function addAssignees(
  tx: Transaction,
  taskId: number,
  emails: readonly string[],
  ids: ReadonlyMap<string, number>,
): Promise<void> {
  if (emails.length === 0) return;
  await tx.insert(taskAssignee).values(emails.map((email) => ({ taskId, individualId: ids.get(email)! })));
}
