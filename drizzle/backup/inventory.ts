import type { Sql } from "../client.ts";
import type { DatabaseObject } from "../revision/drop.ts";
import { headsOf, type Node } from "../revision/history.ts";
import { withParents } from "../revision/plan.ts";
import { type Applied, readApplied } from "../revision/store.ts";
import { literal, quoted } from "../sql_text.ts";

export interface Table {
  schema: string;
  name: string;
  /** Stored columns only; generated ones are computed again. */
  columns: string[];
  /** The SQL type of each column. */
  types?: string[];
}

export interface Sequence {
  schema: string;
  name: string;
  /** A string of digits: it may exceed a JavaScript number. */
  last_value: string;
  is_called: boolean;
}

/** What a backup has to contain. */
export interface Inventory {
  /** Sorted by schema and name. */
  tables: Table[];
  /** Undefined if the database is not ours: it lacks svc's table `revision`. */
  applied: Applied[] | undefined;
}

export type Runner = Pick<Sql, "unsafe">;

const foreignSchema = "n.nspname ~ '^pg_' or n.nspname = 'information_schema'";
const ofExtension = `exists (select from pg_depend d
  where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`;

/**
 * Settings for a transaction that reads everything, like pg_dump's: presets of the role or the database must not time
 * it out, hide rows, or change how a value is written.
 */
export const readEverything = `
  set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local lock_timeout = '60s';
  select set_config('transaction_timeout', '0', true) where current_setting('transaction_timeout', true) is not null;
  set local row_security = off; set local synchronize_seqscans = off; set local search_path = '';
  set local datestyle = iso; set local intervalstyle = postgres; set local extra_float_digits = 3;
  set local bytea_output = hex`;

/** Every table that stores rows and belongs to no extension. */
export async function readTables(sql: Runner): Promise<Table[]> {
  const tables = await sql.unsafe(`
    select n.nspname as schema, c.relname as name, coalesce((select json_agg(a.attname order by a.attnum)
      from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '')::text, '[]') as columns,
      coalesce((select json_agg(format_type(a.atttypid, a.atttypmod) order by a.attnum)
      from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '')::text, '[]') as types
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and not (${foreignSchema}) and not ${ofExtension}
    order by n.nspname collate "C", c.relname collate "C"`);
  return tables.map(({ schema, name, columns, types }) => ({
    schema,
    name,
    columns: JSON.parse(columns),
    types: JSON.parse(types),
  }));
}

/** Reads the tables and the applied revisions. */
export async function readInventory(sql: Runner): Promise<Inventory> {
  const found = await readTables(sql);
  // Locks the tables until the transaction ends, so that they cannot be altered while being read.
  const names = found.map(tableName);
  if (names.length > 0) await sql.unsafe(`lock table only ${names.join(", only ")} in access share mode`);
  return {
    tables: found,
    applied: await readApplied(sql),
  };
}

/** The heads of the applied revisions. */
export function headsOfApplied(applied: readonly Applied[], known: readonly Node[]): string[] {
  return headsOf(withParents(known, applied));
}

/**
 * Reads the position of each sequence that belongs to a column of these tables, or that is svc's own. It never lags behind
 * the snapshot's rows, which were numbered earlier.
 */
export async function readSequences(
  sql: Runner,
  tables: readonly Table[],
  isOwn: (object: DatabaseObject) => boolean,
): Promise<Sequence[]> {
  const all = await sql.unsafe(`
    select n.nspname as schema, c.relname as name, d.refobjid = any (${oids(tables)}) as "isOfTable"
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    left join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')
      and d.refclassid = 'pg_class'::regclass
    where c.relkind = 'S' and not (${foreignSchema}) and not ${ofExtension}
    order by n.nspname collate "C", c.relname collate "C"`);
  const found = all.filter(
    ({ schema, name, isOfTable }) => isOfTable ?? isOwn({ kind: "sequence", schema, name }),
  );
  const sequences: Sequence[] = [];
  for (const { schema, name } of found) {
    const [row] = await sql.unsafe(
      `select last_value::text as last_value, is_called from ${tableName({ schema, name })}`,
    );
    sequences.push({ schema, name, last_value: row!.last_value, is_called: row!.is_called });
  }
  return sequences;
}

/** The tables for SQL, as an array. */
export function oids(tables: readonly Pick<Table, "schema" | "name">[]): string {
  return `array[${tables.map((table) => literal(tableName(table))).join(", ")}]::regclass[]::oid[]`;
}

/** The row count of each table, in the order of `tables`. */
export async function countRows(
  sql: Runner,
  tables: readonly Pick<Table, "schema" | "name">[],
): Promise<number[]> {
  const counts: number[] = [];
  for (const table of tables) {
    const [row] = await sql.unsafe(`select count(*)::text as rows from only ${tableName(table)}`);
    counts.push(Number(row!.rows));
  }
  return counts;
}

/** The table's name for SQL. */
export function tableName({ schema, name }: Pick<Table, "schema" | "name">): string {
  return `${quoted(schema)}.${quoted(name)}`;
}

/** The table's name for a person. */
export function plainName({ schema, name }: Pick<Table, "schema" | "name">): string {
  return schema === "public" ? name : `${schema}.${name}`;
}

/** `table (column, ...)`, in COPY's syntax, which has no empty list for a table without stored columns. */
export function copyTarget(table: Table): string {
  const columns = table.columns.map(quoted).join(", ");
  return columns === "" ? tableName(table) : `${tableName(table)} (${columns})`;
}
