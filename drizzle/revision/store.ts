import { Conflict } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";
import type { Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";
import { literal } from "../sql_text.ts";
import type { Manifest, Revision } from "./history.ts";

type Runner = Pick<Sql, "unsafe">;

/**
 * `applied`: done. `applying`: a non-transactional statement was started, and its end has not been recorded.
 * `reverting`: the same for a downgrade.
 */
export type State = "applied" | "applying" | "reverting";

/** A row of the table `revision`, with its down SQL and parents, so that an older release can revert it. */
export interface Applied {
  id: string;
  checksum: string;
  down: string;
  parents: string[];
  manifest: Partial<Manifest>;
  state: State;
  appliedAt: Date;
}

/** The table of applied revisions. It is not part of the schema: no revision creates it. */
export const revisionTable = `create table if not exists revision (
  id text primary key,
  checksum text not null,
  down_sql text not null,
  applied_at timestamptz not null default now(),
  manifest jsonb not null default '{}',
  state text not null default 'applied'
)`;

/** Databases created before the first release lack these. */
export const revisionColumns = `alter table public.revision
  add column if not exists manifest jsonb not null default '{}',
  add column if not exists state text not null default 'applied'`;

/** Columns that the table has had from the start. A table without them belongs to another program. */
const firstColumns = ["id text", "checksum text", "down_sql text", "applied_at timestamp with time zone"];

/** @throws Conflict if something else has the table's name */
export async function createRevisionTable(sql: Sql): Promise<void> {
  // One message is one transaction: another program's table gets no columns of ours.
  const check = "select id, checksum, down_sql, applied_at from public.revision limit 0";
  await sql.unsafe(`${revisionTable};\n${check};\n${revisionColumns}`).catch(async (error: unknown) => {
    if (!wrongObject.includes(errorCode(error) ?? "")) throw error;
    throw (await nameTaken(sql)) ?? error;
  });
}

/**
 * Runs no statement that may fail in a transaction, unless another session drops the table meanwhile.
 * @returns undefined if the table is missing, in a database that we never touched
 * @throws Conflict if something else has the table's name
 */
export async function readApplied(sql: Runner): Promise<Applied[] | undefined> {
  const columns = await sql.unsafe(`
    select attname || ' ' || format_type(atttypid, atttypmod) as text
    from pg_class c left join pg_attribute on attrelid = c.oid and attnum > 0 and not attisdropped
    where c.oid = to_regclass('public.revision')`);
  if (columns.length === 0) return undefined;
  const there = new Set(columns.map(({ text }) => text));
  if (!firstColumns.every((column) => there.has(column))) {
    const taken = await nameTaken(sql);
    if (taken) throw taken;
    return undefined;
  }
  // As JSON, so that a column this database does not have yet is simply absent.
  const rows = await sql
    .unsafe("select to_jsonb(r)::text as row from public.revision r order by applied_at, id")
    .catch((error: unknown) => {
      if (errorCode(error) !== dropped) throw error;
    });
  return rows?.map(({ row }) => toApplied(JSON.parse(row)));
}

/** undefined_table */
const dropped = "42P01";

/** undefined_column, wrong_object_type, duplicate_object, duplicate_table */
const wrongObject = ["42703", "42809", "42710", "42P07"];

/** Describes what has the name of our table; undefined if nothing has. */
async function nameTaken(sql: Runner): Promise<Conflict | undefined> {
  const [row] = await sql.unsafe(`
    select (pg_identify_object(classid, oid, 0)).type as kind from (
      select 'pg_class'::regclass as classid, oid from pg_class
        where relname = 'revision' and relnamespace = 'public'::regnamespace
      union all
      select 'pg_type'::regclass, oid from pg_type
        where typname = 'revision' and typnamespace = 'public'::regnamespace) as taken`);
  if (!row) return undefined;
  return new Conflict(
    `The ${row.kind} public.revision is not the table where svc records revisions: rename it, or use another database`,
  );
}

/** A row as JSON. */
export function toApplied(row: Record<string, unknown>): Applied {
  const manifest = (row.manifest ?? {}) as Partial<Manifest>;
  return {
    id: String(row.id),
    checksum: String(row.checksum),
    down: String(row.down_sql),
    parents: manifest.parents ?? [],
    manifest,
    state: (row.state as State | undefined) ?? "applied",
    appliedAt: new Date(String(row.applied_at)),
  };
}

/** Adds the checksums of what is applied, for a release that has no file to compare the down SQL with. */
function recorded(up: string, down: string, manifest: Manifest): Manifest {
  return { ...manifest, checksums: { up: sha256Hex(up), down: sha256Hex(down) } };
}

/** The statement that records a revision as applied, for a script, which cannot pass parameters. */
export function recordScript(
  { id, checksum, up, down, manifest }: Revision,
  state: State = "applied",
): string {
  const values = [id, checksum, down, JSON.stringify(recorded(up, down, manifest)), state]
    .map(literal)
    .join(", ");
  return `insert into public.revision (id, checksum, down_sql, manifest, state) values (${values})`;
}

export function forgetScript(id: string): string {
  return `delete from public.revision where id = ${literal(id)}`;
}

export async function record(sql: Runner, revision: Revision, state: State = "applied"): Promise<void> {
  await sql.unsafe(recordScript(revision, state));
}

export async function forget(sql: Runner, id: string): Promise<void> {
  await sql.unsafe(forgetScript(id));
}

export async function setState(sql: Runner, id: string, state: State): Promise<void> {
  await sql.unsafe("update public.revision set state = $2, applied_at = now() where id = $1", [id, state]);
}

/** Replaces what is stored about a revision with the files' content, after a person has accepted an edit. */
export async function accept(sql: Runner, { id, checksum, up, down, manifest }: Revision): Promise<void> {
  await sql.unsafe(
    "update public.revision set checksum = $2, down_sql = $3, manifest = $4::text::jsonb where id = $1",
    [id, checksum, down, JSON.stringify(recorded(up, down, manifest))],
  );
}
