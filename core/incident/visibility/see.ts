import { and, eq, type SQL, sql } from "drizzle-orm";
import { incident } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Context } from "../../context.ts";
import { mayReadIncident, type Reader } from "./visibility.ts";

/**
 * That `reader` may read this incident, for lists of what belongs to it. PostgreSQL asks once, before the first record;
 * with `mayReadOf` it expects hardly any record to be left, and sorts all there are instead of walking the index.
 */
export function maySee(reader: Reader, id: number): SQL {
  return sql`exists (select from ${incident} where ${incident.id} = ${id} and ${mayReadIncident(reader)})`;
}

/**
 * For these lists, too: an empty page must not be the answer about an incident that is not there or that the reader may
 * not read. The list still has its own condition, for what changes meanwhile.
 *
 * @throws NotFound
 */
export async function seeIncident({ db }: Pick<Context, "db">, reader: Reader, id: number): Promise<void> {
  const [seen] = await db
    .select({ id: incident.id })
    .from(incident)
    .where(and(eq(incident.id, id), mayReadIncident(reader)));
  if (!seen) throw noSuchIncident();
}

/** For what is not there and for what the actor may not read, alike. */
export function noSuchIncident(): NotFound {
  return new NotFound("There is no such incident");
}
