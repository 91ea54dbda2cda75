import { afterAll, beforeAll, expect } from "bun:test";
import { openSql, type Sql } from "../../../drizzle/client.ts";
import {
  type Generated,
  generateBetween,
  type Rename,
  type Snapshot,
} from "../../../drizzle/generate/index.ts";
import { snapshotOf } from "../../../drizzle/generate/kit.ts";
import { displayName } from "../../../drizzle/generate/names.ts";
import { emptyLike } from "../../../drizzle/generate/snapshot.ts";
import { canonicalSchema } from "../../../drizzle/revision/canonical.ts";
import { checkStatements, readMarks } from "../../../drizzle/revision/marks.ts";
import { quoted } from "../../../drizzle/sql_text.ts";
import { createEmptyTestDatabase, type TestDatabase } from "./database.ts";

type Rows = Record<string, Record<string, unknown>[]>;

interface GenerateOptions {
  renames?: readonly Rename[];
}

/** What is generated, with the texts of all revisions in one. */
export interface Steps extends Generated {
  changed: boolean;
  up: string;
  down: string;
  irreversible?: string;
}

export interface RoundTrip extends Steps {
  /** The rows before, after up and after down. */
  rows: { before: Rows; up: Rows; down: Rows };
}

/** The snapshot of tables, as if they were the module drizzle/schema. */
export async function snapshotFor(...things: unknown[]): Promise<Snapshot> {
  return snapshotOf(Object.fromEntries(things.map((thing, at) => [`thing${at}`, thing])));
}

type TripOptions = GenerateOptions & { seed?: string };

/** Creates an empty database for round trips. Call it at the top of a test file. */
export function tripDatabase() {
  let database: TestDatabase;
  let sql: Sql;
  beforeAll(async () => {
    database = await createEmptyTestDatabase();
    sql = openSql(database.url, { max: 1 });
  });
  afterAll(async () => {
    await sql.end();
    await database[Symbol.asyncDispose]();
  });
  return {
    sql: () => sql,
    /** Migrates from some tables to others and back. */
    trip: async (previous: unknown[], current: unknown[], options: string | TripOptions = {}) =>
      roundTrip(
        sql,
        await snapshotFor(...previous),
        await snapshotFor(...current),
        typeof options === "string" ? { seed: options } : options,
      ),
    between: async (previous: unknown[], current: unknown[], options: GenerateOptions = {}) =>
      stepsBetween(await snapshotFor(...previous), await snapshotFor(...current), options),
  };
}

export async function stepsBetween(
  previous: Snapshot,
  current: Snapshot,
  options: GenerateOptions = {},
): Promise<Steps> {
  const generated = await generateBetween(previous, current, options);
  const { parts } = generated;
  return {
    ...generated,
    changed: parts.length > 0,
    up: parts.map(({ up }) => up).join("\n"),
    down: parts.map(({ down }) => down).join("\n"),
    irreversible: parts.find(({ irreversible }) => irreversible !== undefined)?.irreversible,
  };
}

/** Runs a revision's SQL like the engine. */
async function applySql(sql: Sql, text: string): Promise<void> {
  const marks = readMarks(text);
  checkStatements("The test", text, marks);
  if (marks.irreversible !== undefined) throw new Error(`irreversible: ${marks.irreversible}`);
  if (marks.transactional) await sql.begin((transaction) => transaction.unsafe(text));
  else await sql.unsafe(text);
}

/**
 * Migrates a database with rows from one schema to another, back, and up again, and compares: the new schema created
 * directly and by the revision, the schema before up and after down, and the rows that down restores.
 */
async function roundTrip(
  sql: Sql,
  previous: Snapshot,
  current: Snapshot,
  options: TripOptions = {},
): Promise<RoundTrip> {
  const steps = await stepsBetween(previous, current, options);
  const ups = steps.parts.map(({ up }) => up);
  const downs = steps.parts.map(({ down }) => down).toReversed();
  const note = `\n${steps.up}\n-- down\n${steps.down}`;
  const run = async (texts: readonly string[]) => {
    for (const text of texts) {
      await applySql(sql, text).catch((error: Error) => {
        throw new Error(`${error.message}${note}`, { cause: error });
      });
    }
    return canonicalSchema(sql);
  };
  const create = async (schema: Snapshot) => {
    await reset(sql);
    return run((await generateBetween(emptyLike(schema), schema)).parts.map(({ up }) => up));
  };
  const fresh = await create(current);
  const before = await create(previous);
  if (options.seed) await sql.unsafe(options.seed);
  const rows = { before: await rowsOf(sql), up: {}, down: {} };
  const after = await run(ups);
  rows.up = await rowsOf(sql);
  expect(after, `up creates the schema${note}`).toBe(fresh);
  if (steps.irreversible !== undefined) return { ...steps, rows };
  const back = relax(steps.down, await run(downs));
  rows.down = await rowsOf(sql);
  expect(back, `down restores the schema${note}`).toBe(relax(steps.down, before));
  expect(await run(ups), `up again${note}`).toBe(after);
  expectSurvivors(previous, current, options.renames ?? [], steps, rows, note);
  return { ...steps, rows };
}

export async function reset(sql: Sql): Promise<void> {
  const schemas = await sql<{ name: string }[]>`
    select quote_ident(nspname) as name from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`;
  await sql.unsafe(
    `${schemas.map(({ name }) => `drop schema ${name} cascade;`).join("")}create schema public`,
  );
}

async function rowsOf(sql: Sql): Promise<Rows> {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`;
  const rows: Rows = {};
  for (const { name } of tables) {
    // sql(name) would take the part before a dot for a schema.
    const found = await sql.unsafe(
      `select to_jsonb(t) as row from ${quoted(name)} t order by to_jsonb(t)::text`,
    );
    rows[name] = found.map(({ row }) => row);
  }
  return rows;
}

/** Applies the looser columns and keys that down creates if rows would violate the original ones. */
function relax(down: string, schema: string): string {
  let relaxed = schema;
  for (const [, table, column] of down.matchAll(
    /^ {4}ALTER TABLE (.+) ALTER COLUMN (".+") SET NOT NULL;$/gm,
  )) {
    const place = `column ${table!.replaceAll('"', "")}.${column!.replaceAll('"', "")} `;
    relaxed = relaxed
      .split("\n")
      .map((line) => (line.replaceAll('"', "").startsWith(place) ? line.replace(" not null", "") : line))
      .join("\n");
  }
  return /NOT VALID;$/m.test(down) ? relaxed.replaceAll(" NOT VALID", "") : relaxed;
}

interface Tables {
  tables: Record<string, { name: string; columns: Record<string, unknown> }>;
}

/** Expects equal values in all columns of both schemas, except those reported as lost. */
function expectSurvivors(
  previous: Snapshot,
  current: Snapshot,
  renames: readonly Rename[],
  steps: Steps,
  { before, down: after }: RoundTrip["rows"],
  note: string,
): void {
  const losses = [steps.up, steps.down].flatMap((text) => readMarks(text).losses);
  const isLost = (table: string, column: string) =>
    losses.some((loss) => {
      if (loss.kind === "table") return loss.table === displayName({ name: table });
      if (loss.kind === "column")
        return `${loss.table}.${loss.column}` === displayName({ name: table }, column);
      return loss.kind === "other" && loss.text.startsWith(`${displayName({ name: table }, column)} `);
    });
  const [had, has] = [previous as unknown as Tables, current as unknown as Tables];
  for (const table of Object.values(had.tables)) {
    const newName =
      renames.find(({ kind, from }) => kind === "table" && from === table.name)?.to ?? table.name;
    const now = Object.values(has.tables).find(({ name }) => name === newName);
    const columns = Object.keys(table.columns).filter((name) => {
      const renamed = renames.find(
        (it) => it.kind === "column" && it.table === table.name && it.from === name,
      );
      const newColumn = renamed?.to ?? name;
      return now?.columns[newColumn] && !isLost(table.name, name) && !isLost(newName, newColumn);
    });
    const pick = (rows: Rows) =>
      (rows[table.name] ?? []).map((row) => JSON.stringify(columns.map((name) => row[name]))).sort();
    if (columns.length > 0) expect(pick(after), `rows of ${table.name}${note}`).toEqual(pick(before));
  }
}
