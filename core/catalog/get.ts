import { and, eq } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { Context } from "../context.ts";
import type { Reader } from "../incident/visibility/visibility.ts";
import { type CatalogTable, type Columns, type Item, noSuch, type Resource } from "./resource.ts";

/** @throws NotFound also for a record that the reader may not know of */
export async function getRecord<T extends CatalogTable, C extends Columns, F extends object>(
  { db }: Pick<Context, "db">,
  reader: Reader,
  resource: Resource<T, C, F>,
  id: number,
): Promise<Item<C>> {
  const table: PgTable = resource.table;
  const [found] = await db
    .select(resource.columns as Columns)
    .from(table)
    .where(and(eq(resource.table.id, id), resource.present, resource.seen?.(reader)));
  if (!found) throw noSuch(resource);
  return found as Item<C>;
}
