import { Conflict } from "../../platform/errors.ts";
import { isPostgresError, operatorsError } from "../database_error.ts";
import { inOrder, type Revision, withoutMissingParents } from "../revision/history.ts";
import { settings } from "../revision/lock.ts";
import { splitStatements, wordsIn, wordsOf } from "../revision/statements.ts";
import { revisionTable } from "../revision/store.ts";
import { installTriggers } from "../revision/triggers.ts";
import { quoted } from "../sql_text.ts";
import { copyIn } from "./copy.ts";
import { copyTarget, plainName, type Runner, readInventory, type Table, tableName } from "./inventory.ts";
import { clearTheWay, refreshViews, setSequences } from "./loading.ts";
import type { OnProgress } from "./progress.ts";
import { type BackupContent, readRows } from "./reader.ts";

/** A table and its row count. */
export interface TableRows extends Table {
  rows: number;
}

interface Loading {
  path: string;
  backup: { content: BackupContent; tables: readonly TableRows[] };
  progress?: OnProgress;
  notice?: (message: string) => void;
}

/**
 * Creates tables and rows in this transaction of an empty database.
 * @returns the rows loaded, by `tableName`
 */
export async function loadBackup(
  sql: Runner,
  { path, backup: { content, tables }, progress, notice }: Loading,
  known: readonly Revision[],
): Promise<Map<string, number>> {
  const { header, summary } = content;
  progress?.({ doing: "creating tables" });
  await makeTables(sql, header.revisions, known);
  await provideColumns(sql, tables, notice);
  const putBack = await clearTheWay(sql, tables);
  // Also removes rows written by revisions, which the backup includes. COPY may then write rows frozen.
  if (tables.length > 0) await sql.unsafe(`truncate only ${tables.map(tableName).join(", only ")}`);
  const counts = new Map<string, number>();
  let bytes = 0;
  for await (const { table, rows } of byTable(readRows(path, content))) {
    const target = tables[table]!;
    const name = plainName(target);
    const told = async function* () {
      for await (const piece of rows) {
        bytes += piece.length;
        progress?.({ doing: "restoring", table: name, bytes, of: summary.bytes });
        yield piece;
      }
    };
    const loaded = await copyIn(sql, `copy ${copyTarget(target)} from stdin with (freeze)`, told());
    counts.set(tableName(target), (counts.get(tableName(target)) ?? 0) + loaded);
  }
  await setSequences(sql, header.sequences);
  progress?.({ doing: "creating indexes" });
  await putBack();
  await refreshViews(sql);
  await installTriggers(sql, { filled: true });
  return counts;
}

/**
 * Creates the tables with this release's revisions, in the transaction that also loads the rows.
 * @throws Conflict for a revision that cannot run in it
 */
export async function makeTables(
  sql: Runner,
  wanted: readonly { id: string }[],
  known: readonly Revision[],
): Promise<void> {
  const ids = new Set(wanted.map(({ id }) => id));
  await sql.unsafe(revisionTable);
  const revisions = withoutMissingParents(known.filter(({ id }) => ids.has(id)));
  for (const { id, up } of inOrder(revisions)) {
    try {
      await sql.unsafe(inTransaction(up));
    } catch (error) {
      if (!isPostgresError(error) || operatorsError(error) !== error) throw error;
      throw new Conflict(
        `The tables cannot be created in one transaction, nothing was changed: up.sql of revision ${id}: ${error.message}`,
        { cause: error },
      );
    }
    // Each revision was written for a session of its own.
    await sql.unsafe(settings);
  }
}

/**
 * Removes what cannot run in a transaction, and is pointless on tables that are not visible yet: CONCURRENTLY (of CREATE
 * INDEX, DROP INDEX and DETACH PARTITION), and statements that only maintain tables.
 */
function inTransaction(up: string): string {
  return splitStatements(up)
    .map(({ text }) => {
      const words = wordsIn(text);
      if (/^(VACUUM|ANALYZE|ANALYSE|REINDEX)$/.test(words[0]!.word)) return "";
      const isIndex = words.slice(1, 3).some(({ word }) => word === "INDEX");
      const concurrently = [...(isIndex ? words.slice(2, 4) : []), ...words.slice(-1)].find(
        ({ word }) => word === "CONCURRENTLY",
      );
      if (!concurrently) return text;
      const { at, word } = concurrently;
      return text.slice(0, at) + text.slice(at + word.length);
    })
    .join("\n;\n");
}

/**
 * Whether a statement cannot run in the transaction that also loads the rows: a DO block that ends its transaction, a
 * procedure, which may, and what PostgreSQL never allows in one.
 */
export function needsOwnTransaction(up: string): boolean {
  return splitStatements(up).some(({ text }) => {
    const [first = "", ...words] = wordsOf(text);
    if (first === "CALL" || (first === "ALTER" && words[0] === "SYSTEM")) return true;
    if (/^(CREATE|DROP)$/.test(first) && /^(DATABASE|TABLESPACE|SUBSCRIPTION)$/.test(words[0] ?? ""))
      return true;
    if (first !== "DO") return false;
    const bodies = words.filter((word) => word.startsWith("$")).map((word) => word.replace(/^\$.*?\$/, ""));
    return bodies
      .flatMap(splitStatements)
      .some((statement) => ["COMMIT", "ROLLBACK", "CHAIN"].includes(wordsOf(statement.text).at(-1) ?? ""));
  });
}

/**
 * Adds the backup's columns that no revision creates, because they were added by hand: with type and values, but
 * without a default or constraints.
 *
 * @throws Conflict for a table that no revision creates, and for a missing type
 */
async function provideColumns(
  sql: Runner,
  tables: readonly Table[],
  notice?: (message: string) => void,
): Promise<void> {
  const made = new Map((await readInventory(sql)).tables.map((table) => [tableName(table), table]));
  for (const table of tables) {
    const there = made.get(tableName(table));
    if (!there) throw addedByHand(`the table ${plainName(table)}`);
    for (const [index, column] of table.columns.entries()) {
      if (there.columns.includes(column)) continue;
      const what = `the column ${column} of ${plainName(table)}`;
      const type = table.types?.[index] ?? "";
      const [known] = await sql.unsafe("select to_regtype(nullif($1::text, '')) is not null as yes", [type]);
      if (!known!.yes) throw addedByHand(what);
      await sql.unsafe(`alter table ${tableName(table)} add column ${quoted(column)} ${type}`);
      notice?.(
        `no revision creates ${what}: it is restored with its values, without a default or constraints`,
      );
    }
  }
}

function addedByHand(what: string): Conflict {
  return new Conflict(`The backup holds ${what}, which no revision creates: it was added by hand`);
}

/** Groups the pieces by table. Each group must be read to its end before the next. */
async function* byTable(
  pieces: AsyncGenerator<{ table: number; rows: Uint8Array }>,
): AsyncGenerator<{ table: number; rows: AsyncIterable<Uint8Array> }> {
  let next = await pieces.next();
  try {
    while (!next.done) {
      const { table } = next.value;
      const rows = async function* () {
        while (!next.done && next.value.table === table) {
          yield next.value.rows;
          next = await pieces.next();
        }
      };
      yield { table, rows: rows() };
    }
  } finally {
    await pieces.return(undefined);
  }
}
