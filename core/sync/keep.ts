import { and, eq, getTableColumns, inArray, isNotNull, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import { lockSource } from "../catalog/source.ts";
import { differenceOf } from "./difference.ts";
import type { Reading } from "./read.ts";

/** A table of records of which some come from sources. One that vanished there is a tombstone (`deletedAt`). */
export type SourceTable = PgTable &
  Record<"source" | "externalId" | "deletedAt" | "version" | "updatedAt", PgColumn>;

/** A kind of record that follows lists of sources. */
export interface Followed<I, F extends object> {
  table: SourceTable;
  /** @throws InvalidInput */
  parse(item: I): F;
  /** Values that a source says of a new record, and a person afterwards. */
  firstValues?(item: I): Record<string, unknown>;
  /** Writes what belongs to the records in other tables. @returns how many rows were another than before */
  keep?(tx: Transaction, source: string, reading: Reading<I, F>, at: Date): Promise<number>;
}

/** Rows of one statement: PostgreSQL takes 65,535 values at most. */
const batch = 2000;

/** `rows`, in the order in which they stand, in parts that one statement can take. */
export function* batchesOf<T>(rows: readonly T[]): Generator<T[]> {
  for (let at = 0; at < rows.length; at += batch) yield rows.slice(at, at + batch);
}

/**
 * Makes our records of a source those of its list. Only what is another than before is written. One that vanished keeps
 * its row, so that it is the same when it comes back.
 */
export async function keepRecords<I, F extends object>(
  tx: Transaction,
  followed: Followed<I, F>,
  { source, reading, at }: { source: string; reading: Reading<I, F>; at: Date },
): Promise<{ done: number; skipped: number }> {
  const { table, firstValues, keep } = followed;
  // One list at a time: of two, the later would be held against what the earlier has not written yet.
  await lockSource(tx, source);
  const { records, unread } = reading;
  const fields = Object.keys(records[0]?.fields ?? {});
  const difference = differenceOf(await keptOf<F>(tx, table, source, fields), records, unread);
  const items = new Map(records.map(({ externalId, item }) => [externalId, item]));
  const again: Record<string, unknown> = {
    ...Object.fromEntries(fields.map((name) => [name, excluded(table, name)])),
    ...{ deletedAt: null, version: sql`${table.version} + 1`, updatedAt: at },
  };
  for (const part of batchesOf(difference.written)) {
    const rows = part.map(({ externalId, fields }) => ({
      ...{ ...firstValues?.(items.get(externalId)!), ...fields },
      ...{ source, externalId, createdAt: at, updatedAt: at },
    }));
    await tx
      .insert(table)
      .values(rows)
      .onConflictDoUpdate({ target: [table.source, table.externalId], set: again });
  }
  for (const part of batchesOf(difference.vanished)) {
    await tx
      .update(table)
      .set({ deletedAt: at, version: sql`${table.version} + 1`, updatedAt: at } as Record<string, unknown>)
      .where(and(eq(table.source, source), inArray(table.externalId, part)));
  }
  const more = (await keep?.(tx, source, reading, at)) ?? 0;
  return { done: difference.written.length + difference.vanished.length + more, skipped: difference.same };
}

async function keptOf<F extends object>(
  tx: Transaction,
  table: SourceTable,
  source: string,
  names: readonly string[],
) {
  const columns = getTableColumns(table);
  const rows = await tx
    .select({
      ...{ externalId: table.externalId, gone: sql<boolean>`${isNotNull(table.deletedAt)}` },
      fields: Object.fromEntries(names.map((name) => [name, columns[name]!])),
    })
    .from(table)
    .where(eq(table.source, source));
  return rows as unknown as { externalId: string; gone: boolean; fields: F }[];
}

/** In `on conflict do update`: the value that the row would have had. */
function excluded(table: PgTable, name: string): SQL {
  return sql`excluded.${sql.identifier(getTableColumns(table)[name]!.name)}`;
}
