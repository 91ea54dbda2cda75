import { and, eq, getTableColumns, inArray, notInArray, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import { definition, term } from "../../drizzle/schema/index.ts";
import { InvalidInput } from "../../platform/errors.ts";

/** A table whose rows are named by id. Rows that do not match `present` are hidden, and cannot be named. */
export interface Target {
  id: PgColumn;
  present?: SQL;
}

export const toDefinition: Target = { id: definition.id };
export const toTerm: Target = { id: term.id, present: sql`${term.deletedAt} is null` };

/** A table of pairs: the targets that its owners name. */
export interface Link {
  /** The columns with the owner's id and the target's id. */
  owner: PgColumn;
  to: PgColumn;
  target: Target;
  /** If rows record their writer: the values in our rows. Others are left alone. */
  ours?: Record<string, string>;
}

/**
 * The targets that an owner names, in order of their ids: a column of its SELECT. Hidden ones are left out, but stay
 * linked for when they come back.
 */
export function linkedIds({ owner, to, target, ours }: Link, ownerId: PgColumn): SQL<number[]> {
  const ids = sql`select ${to} from ${owner.table}
    where ${and(eq(owner, ownerId), areOurs(owner.table, ours), isPresent(target, to))} order by ${to}`;
  // Nested, because drizzle would otherwise drop the columns' table names, and `id` would be the target's.
  return sql<number[]>`${sql`array(${ids})`}`.mapWith((texts: string[]) => texts.map(Number));
}

/**
 * Sets an owner's targets to exactly these. The targets cannot change until the transaction ends.
 * @returns whether a target was removed
 * @throws InvalidInput for `field` when one does not exist
 */
export async function setLinks(
  tx: Transaction,
  { owner, to, target, ours = {} }: Link,
  { field, ownerId, ids }: { field: string; ownerId: number; ids: readonly number[] },
): Promise<boolean> {
  const { table } = owner;
  const targets = await keepTargets(tx, target, field, ids);
  const removed = await tx
    .delete(table)
    .where(and(eq(owner, ownerId), areOurs(table, ours), notInArray(to, targets), isPresent(target, to)))
    .returning({ id: to });
  if (targets.length > 0) {
    const rows = targets.map((id) => ({ ...ours, [keyOf(owner)]: ownerId, [keyOf(to)]: id }));
    const insert = tx.insert(table).values(rows);
    // A link that the worker found becomes ours when a person sets it.
    if (Object.keys(ours).length > 0) await insert.onConflictDoUpdate({ target: [owner, to], set: ours });
    else await insert.onConflictDoNothing();
  }
  return removed.length > 0;
}

/**
 * Returns the unique ids, whose records exist and stay until the transaction ends.
 * @throws InvalidInput for `field` when one does not exist
 */
export async function keepTargets(
  tx: Transaction,
  { id, present }: Target,
  field: string,
  ids: readonly number[],
): Promise<number[]> {
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return [];
  const found = await tx
    .select({ id })
    .from(id.table)
    .where(and(inArray(id, wanted), present))
    .for("key share");
  if (found.length < wanted.length)
    throw new InvalidInput(field, `The field ${field} refers to a record that does not exist`);
  return wanted;
}

/**
 * Matches links to records that are not hidden. A scalar sub-select, which PostgreSQL runs for each link: with a join, it
 * reads all records if its statistics are from when there were few.
 */
function isPresent({ id, present }: Target, to: PgColumn): SQL | undefined {
  return present && sql`(select ${present} from ${id.table} where ${id} = ${to})`;
}

/** Matches our rows. */
function areOurs(table: PgTable, ours: Record<string, string> = {}): SQL | undefined {
  const columns = getTableColumns(table);
  return and(...Object.entries(ours).map(([key, value]) => eq(columns[key]!, value)));
}

/** drizzle's key of a column in the values of a row. */
function keyOf(column: PgColumn): string {
  return Object.entries(getTableColumns(column.table)).find(([, one]) => one === column)![0];
}
