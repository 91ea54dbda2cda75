import type { PgTable } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import type { Links } from "./example.ts";

/** Ids of what `populate` makes, by name. */
export interface Defaults {
  types: ReadonlyMap<string, number>;
  priorities: ReadonlyMap<string, number>;
}

/** The id of a default. @throws RangeError for a name that `populate` does not make */
export function idIn(ids: ReadonlyMap<string, number>, name: string): number {
  const id = ids.get(name);
  if (id === undefined) throw new RangeError(`There is no default ${name}`);
  return id;
}

/** Rows of the three tables that link a record to types, priorities and terms. */
export function linkRows<K extends string>(
  records: readonly (Links & { id: number })[],
  column: K,
  { types, priorities }: Defaults,
) {
  const rows = <L extends string>(other: L, idsOf: (record: Links) => number[]) =>
    records.flatMap((record) => pairs(column, record.id, other, idsOf(record)));
  return {
    types: rows("incidentTypeId", (record) => record.types.map((name) => idIn(types, name))),
    priorities: rows("incidentPriorityId", (record) =>
      record.priorities.map((name) => idIn(priorities, name)),
    ),
    terms: rows("termId", ({ termIds }) => termIds),
  };
}

export function pairs<A extends string, B extends string>(
  column: A,
  id: number,
  other: B,
  ids: readonly number[],
) {
  return ids.map((to) => ({ [column]: id, [other]: to }) as Record<A | B, number>);
}

/** As `insert`, which takes no empty list. */
export async function insertAll<T extends PgTable>(
  tx: Transaction,
  table: T,
  rows: readonly T["$inferInsert"][],
): Promise<void> {
  if (rows.length > 0) await tx.insert(table).values([...rows]);
}
