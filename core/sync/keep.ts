import { and, eq, getTableColumns, inArray, isNotNull, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import { lockSource } from "../catalog/source.ts";
import { differenceOf } from "./difference.ts";
import type { ItemReader, Reading } from "./read.ts";
import { type Unwritten, waitBriefly, writeInParts } from "./savepoints.ts";

/**
 * A table of records of which some come from sources. A record that has vanished from its source is a tombstone
 * (`deletedAt`).
 */
export type SourceTable = PgTable &
  Record<"source" | "externalId" | "deletedAt" | "version" | "updatedAt", PgColumn>;

/** The outcome of a write: how many rows changed, and the ids of those that could not be written. */
export interface Kept extends Unwritten<string> {
  done: number;
}

/** A kind of record that follows the lists of sources. */
export interface Followed<I, F extends object> extends ItemReader<I, F> {
  table: SourceTable;
  /** Values that come from the source when a record is new, and from people afterwards. */
  firstValues?(item: I): Record<string, unknown>;
  /** Writes the records' related rows. */
  keep?(tx: Transaction, source: string, reading: Reading<I, F>, at: Date): Promise<Kept>;
}

/**
 * Makes our records of a source match its list. Only changes are written. A record that has vanished keeps its row, so
 * that it is the same one when it comes back.
 */
export async function keepRecords<I, F extends object>(
  tx: Transaction,
  followed: Followed<I, F>,
  { source, reading, at }: { source: string; reading: Reading<I, F>; at: Date },
): Promise<Kept & { skipped: number }> {
  const { table, firstValues, keep } = followed;
  // One list at a time: otherwise a later list would be compared with what the earlier one has not written yet.
  await lockSource(tx, source);
  await waitBriefly(tx);
  const { records, unread, complete } = reading;
  const fields = Object.keys(records[0]?.fields ?? {});
  const difference = differenceOf(await keptOf<F>(tx, table, source, fields), records, unread);
  const items = new Map(records.map(({ externalId, item }) => [externalId, item]));
  const again: Record<string, unknown> = {
    ...Object.fromEntries(fields.map((name) => [name, excluded(table, name)])),
    deletedAt: null,
    version: sql`${table.version} + 1`,
    updatedAt: at,
  };
  const unwritten = await writeInParts(tx, difference.written, (inner, part) => {
    const rows = part.map(({ externalId, fields }) => ({
      ...firstValues?.(items.get(externalId)!),
      ...fields,
      source,
      externalId,
      createdAt: at,
      updatedAt: at,
    }));
    return inner
      .insert(table)
      .values(rows)
      .onConflictDoUpdate({ target: [table.source, table.externalId], set: again });
  });
  const vanished = complete ? difference.vanished : [];
  const unremoved = await writeInParts(tx, vanished, (inner, part) =>
    inner
      .update(table)
      .set({ deletedAt: at, version: sql`${table.version} + 1`, updatedAt: at } as Record<string, unknown>)
      .where(and(eq(table.source, source), inArray(table.externalId, part))),
  );
  const more = (await keep?.(tx, source, reading, at)) ?? { done: 0, refused: [], locked: [] };
  const idsOf = (why: keyof Unwritten<unknown>) => [
    ...unwritten[why].map(({ externalId }) => externalId),
    ...unremoved[why],
  ];
  const [refused, locked] = [idsOf("refused"), idsOf("locked")];
  const all = difference.written.length + vanished.length;
  return {
    done: all - refused.length - locked.length + more.done,
    skipped: difference.same,
    refused: [...refused, ...more.refused],
    locked: [...locked, ...more.locked],
  };
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
      externalId: table.externalId,
      gone: sql<boolean>`${isNotNull(table.deletedAt)}`,
      fields: Object.fromEntries(names.map((name) => [name, columns[name]!])),
    })
    .from(table)
    .where(eq(table.source, source));
  return rows as unknown as { externalId: string; gone: boolean; fields: F }[];
}

/** In `on conflict do update`: the value that the inserted row would have had. */
function excluded(table: PgTable, name: string): SQL {
  return sql`excluded.${sql.identifier(getTableColumns(table)[name]!.name)}`;
}
