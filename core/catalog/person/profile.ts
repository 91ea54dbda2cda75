import { eq } from "drizzle-orm";
import { individual } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { getRecord } from "../get.ts";
import { individuals } from "../individual.ts";
import { updateRecord } from "../update.ts";
import { individualOf } from "./of_actor.ts";
import { nameByAddress } from "./person.ts";

/** What users say about themselves. */
export interface Profile {
  name: string;
  /** Of `name`. */
  version: number;
  /** From `parseTimeZone`; null until it is chosen. */
  timeZone: string | null;
}

/** The user's profile, also before anything refers to them. */
export async function getProfile({ db }: Pick<Context, "db">, user: string): Promise<Profile> {
  const { name, version, timeZone } = individual;
  const [found] = await db
    .select({ name, version, timeZone })
    .from(individual)
    .where(eq(individual.email, user));
  return found ?? { name: nameByAddress(user), version: 1, timeZone: null };
}

/**
 * Replaces the actor's profile. The name is that of their individual, with the rules of `updateRecord`.
 *
 * @throws InvalidInput for the name
 * @throws Conflict when somebody has changed the name since `version`
 */
export async function updateProfile(
  context: Context,
  actor: Actor,
  { name, version, timeZone }: Profile,
): Promise<void> {
  const { db, clock, config } = context;
  const people = individuals(config.domain);
  await db.transaction(async (tx) => {
    const id = await individualOf(tx, { user: actor.user }, clock.now());
    const before = await getRecord({ db: tx }, actor, people, id);
    if (before.name !== name)
      await updateRecord({ ...context, db: tx }, actor, people, { id, version, fields: { ...before, name } });
    await tx.update(individual).set({ timeZone }).where(eq(individual.id, id));
  });
}
