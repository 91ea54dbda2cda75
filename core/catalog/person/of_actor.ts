import { eq } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { individual } from "../../../drizzle/schema/index.ts";
import type { Identity } from "../../context.ts";
import { nameByAddress } from "./person.ts";

/**
 * The id of the individual that a user is, who becomes one with the first thing they do. Without a name, they are called by
 * their address. They are not listed: what they have a part in decides who may know of them.
 */
export async function individualOf(
  db: Database | Transaction,
  { user, name = nameByAddress(user) }: Pick<Identity, "user"> & { name?: string },
  at: Date,
): Promise<number> {
  const known = () =>
    db
      .select({ id: individual.id })
      .from(individual)
      .where(eq(individual.email, user))
      // Not gone before they are named.
      .for("key share");
  const [found] = await known();
  if (found) return found.id;
  const values = { name, email: user, listed: false, createdAt: at, updatedAt: at };
  const [made] = await db
    .insert(individual)
    .values(values)
    .onConflictDoNothing({ target: individual.email })
    .returning({ id: individual.id });
  // Somebody else was as fast: theirs is committed, or we would still wait for it.
  return made?.id ?? (await known())[0]!.id;
}
