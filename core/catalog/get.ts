import { and, eq } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { Context } from "../context.ts";
import { type CatalogTable, type Columns, type Item, noSuch, type Resource } from "./resource.ts";

/** @throws NotFound */
export async function getRecord<T extends CatalogTable, C extends Columns, F extends object>(
  { db }: Pick<Context, "db">,
  resource: Resource<T, C, F>,
  id: number,
): Promise<Item<C>> {
  const table: PgTable = resource.table;
  const [found] = await db
    .select(resource.columns as Columns)
    .from(table)
    .where(and(eq(resource.table.id, id), resource.there));
  if (!found) throw noSuch(resource);
  return found as Item<C>;
}
