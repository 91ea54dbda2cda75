import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
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

/** @throws Conflict if something else has the table's name */
export async function createRevisionTable(sql: Sql): Promise<void> {
  await sql.unsafe(revisionTable);
  await readApplied(sql);
}

/**
 * @returns undefined if the table is missing, in a database that we never touched
 * @throws Conflict if something else has the table's name
 */
export async function readApplied(sql: Runner): Promise<Applied[] | undefined> {
  const columns = await sql.unsafe(`
    select attname as name from pg_class c left join pg_attribute on attrelid = c.oid and attnum > 0 and not attisdropped
    where c.oid = to_regclass('public.revision')`);
  if (columns.length === 0) return undefined;
  const there = new Set(columns.map(({ name }) => name));
  if (!["id", "checksum", "down_sql", "applied_at", "manifest", "state"].every((name) => there.has(name)))
    throw new Conflict(
      "The table public.revision is not the table where svc records revisions: rename it, or use another database",
    );
  const rows = await sql.unsafe(
    "select to_jsonb(r)::text as row from public.revision r order by applied_at, id",
  );
  return rows.map(({ row }) => toApplied(JSON.parse(row)));
}

/** A row as JSON. */
export function toApplied(row: Record<string, unknown>): Applied {
  const manifest = row.manifest as Partial<Manifest>;
  return {
    id: String(row.id),
    checksum: String(row.checksum),
    down: String(row.down_sql),
    parents: manifest.parents ?? [],
    manifest,
    state: row.state as State,
    appliedAt: new Date(String(row.applied_at)),
  };
}

/** The statement that records a revision as applied, for a script, which cannot pass parameters. */
export function recordScript({ id, checksum, down, manifest }: Revision, state: State = "applied"): string {
  const values = [id, checksum, down, JSON.stringify(manifest), state].map(literal).join(", ");
  return `insert into public.revision (id, checksum, down_sql, manifest, state) values (${values})`;
}

export function forgetScript(id: string): string {
  return `delete from public.revision where id = ${literal(id)}`;
}

export function stateScript(id: string, state: State): string {
  return `update public.revision set state = '${state}', applied_at = now() where id = ${literal(id)}`;
}

export async function record(sql: Runner, revision: Revision): Promise<void> {
  await sql.unsafe(recordScript(revision));
}

/** Replaces what is stored about a revision with the files' content, after a person has accepted an edit. */
export async function accept(sql: Runner, { id, checksum, down, manifest }: Revision): Promise<void> {
  await sql.unsafe(
    "update public.revision set checksum = $2, down_sql = $3, manifest = $4::text::jsonb where id = $1",
    [id, checksum, down, JSON.stringify(manifest)],
  );
}
