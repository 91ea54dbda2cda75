import { and, eq } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { Context } from "../context.ts";
import type { Reader } from "../incident/visibility/visibility.ts";
import type { Key } from "../list/cursor.ts";
import { type ListQuery, startPage } from "../list/page.ts";
import type { CatalogTable, Columns, Item, Resource } from "./resource.ts";

/** Returns a page of the records that the reader may know of, with these filters. @throws InvalidInput */
export async function listRecords<T extends CatalogTable, C extends Columns, F extends object>(
  { db }: Pick<Context, "db">,
  reader: Reader,
  resource: Resource<T, C, F>,
  query: ListQuery & { filters: Readonly<Record<string, string | undefined>> },
): Promise<{ items: Item<C>[]; next_cursor: string | null }> {
  const values: Record<string, string | undefined> = {};
  const conditions = Object.entries(resource.filters).map(([name, { by, parse }]) => {
    const asked = query.filters[name];
    if (asked === undefined) return undefined;
    values[name] = parse(asked);
    return eq(by, values[name]);
  });
  const page = startPage(resource.list, query, values);
  const table: PgTable = resource.table;
  const rows = await db
    .select({ item: resource.columns as Columns, key: page.key })
    .from(table)
    .where(page.within(and(resource.present, resource.seen?.(reader), ...conditions)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows as { item: Item<C>; key: Key }[]);
}
