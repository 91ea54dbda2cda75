import { and, eq, ne, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { individual } from "../../../drizzle/schema/index.ts";
import type { Context, Identity } from "../../context.ts";
import { nameByAddress } from "./person.ts";

/**
 * Returns the id of a user's individual, which is created by the user's first action. Without a name, it gets one from
 * the address. It is unlisted: those who may know of it depend on what it is involved in.
 */
export async function individualOf(
  db: Database | Transaction,
  { user, name = nameByAddress(user) }: Pick<Identity, "user" | "name">,
  at: Date,
): Promise<number> {
  const known = () =>
    db
      .select({ id: individual.id })
      .from(individual)
      .where(eq(individual.email, user))
      // So that it is not deleted before it is referenced.
      .for("key share");
  const [found] = await known();
  if (found) return found.id;
  const values = { name, email: user, listed: false, createdAt: at, updatedAt: at };
  const [made] = await db
    .insert(individual)
    .values(values)
    .onConflictDoNothing({ target: individual.email })
    .returning({ id: individual.id });
  // Another transaction was faster: it has committed, or we would still wait for it.
  return made?.id ?? (await known())[0]!.id;
}

/**
 * Gives the user's individual the name by which the issuer knows them, unless somebody has named them here already. It is
 * created if necessary, so that the first thing they do appears under that name.
 */
export async function nameUser({ db, clock }: Context, { user, name }: Identity): Promise<void> {
  if (name === undefined) return;
  const at = clock.now();
  await db
    .insert(individual)
    .values({ name, email: user, listed: false, createdAt: at, updatedAt: at })
    .onConflictDoUpdate({
      target: individual.email,
      set: { name, updatedAt: at, version: sql`${individual.version} + 1` },
      setWhere: and(eq(individual.name, nameByAddress(user)), ne(individual.name, name)),
    });
}
