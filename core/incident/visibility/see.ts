import { and, eq, type SQL, sql } from "drizzle-orm";
import { incident } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { type AnyReader, type IncidentRef, mayReadIncident, type Reader } from "./visibility.ts";

/**
 * Matches if `reader` may read this incident, for lists of what belongs to it. PostgreSQL evaluates it once, before the
 * first record. With `mayReadOf` it expects hardly any records to match, and sorts all of them instead of walking the
 * index.
 */
export function maySee(reader: Reader | AnyReader, id: IncidentRef): SQL {
  return sql`exists (select from ${incident} where ${incident.id} = ${id} and ${mayReadIncident(reader)})`;
}

/**
 * Also for these lists: an incident that does not exist or may not be read must not look like an empty page. The list
 * still has its condition, for changes meanwhile. An incident that the actor `sees` is not asked for.
 *
 * @throws NotFound
 */
export async function seeIncident(
  { db }: Pick<Context, "db">,
  reader: Reader & Pick<Actor, "sees">,
  id: number,
): Promise<void> {
  if (reader.sees === id) return;
  const [seen] = await db
    .select({ id: incident.id })
    .from(incident)
    .where(and(eq(incident.id, id), mayReadIncident(reader)));
  if (!seen) throw noSuchIncident();
}

/** The same error for incidents that do not exist and those that the actor may not read. */
export function noSuchIncident(): NotFound {
  return new NotFound("There is no such incident");
}
