import { and, asc, eq, inArray, not } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { individual } from "../../../drizzle/schema/index.ts";
import { mayKnow, type Reader } from "../../incident/visibility/visibility.ts";
import { nameByAddress } from "./person.ts";

/** A reader who may read only Open incidents. */
export const everybody: Reader = { user: "", admin: false };

/**
 * Makes individuals of whom `reader` may not know look new, before they are shown to `reader`: otherwise their name and
 * creation time would reveal that somebody knows them.
 */
export async function makeAsNew(
  tx: Transaction,
  reader: Reader,
  ids: readonly number[],
  at: Date,
): Promise<void> {
  if (ids.length === 0) return;
  const { id, email } = individual;
  const isHidden = and(inArray(id, [...ids]), not(mayKnow(reader)));
  const hidden = await tx.select({ id, email }).from(individual).where(isHidden).orderBy(asc(email));
  for (const one of hidden)
    await tx
      .update(individual)
      .set({ name: nameByAddress(one.email), version: 1, createdAt: at, updatedAt: at })
      .where(and(eq(id, one.id), not(mayKnow(reader))));
}
