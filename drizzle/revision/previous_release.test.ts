import { expect, test } from "bun:test";
import { join } from "node:path";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { openSql, type Sql } from "../client.ts";
import { findDrift } from "./check.ts";
import { downgrade } from "./downgrade.ts";
import { readRevisions } from "./history.ts";
import { oneHead } from "./plan.ts";
import { readApplied } from "./store.ts";
import { upgrade } from "./upgrade.ts";

/** Written by tests/support/database/record_release.ts in the tree of that release. */
const previousRelease = join(import.meta.dir, "../../tests/support/database/previous_release.sql.gz");

type Rows = Record<string, Record<string, unknown>[]>;

test("a database of the previous release keeps its rows through the upgrade, its downgrade and the next upgrade", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const sql = openSql(url, { max: 1 });
  await using parts = new AsyncDisposableStack();
  parts.defer(() => sql.end());
  const dump = await Bun.file(previousRelease).bytes();
  await sql.unsafe(new TextDecoder().decode(Bun.gunzipSync(dump)));
  const before = await readRows(sql);
  expect(Object.entries(before).filter(([, { length }]) => length === 0)).toEqual([]);
  const recorded = ((await readApplied(sql)) ?? []).map(({ id }) => id);
  const head = recorded.at(-1)!;

  const newer = (await readRevisions()).map(({ id }) => id).filter((id) => !recorded.includes(id));
  expect((await upgrade({ url })).applied.toSorted()).toEqual(newer.toSorted());
  expect(await findDrift(url)).toEqual([]);
  const upgraded = await readRows(sql);
  expect(inColumnsOf(before, upgraded)).toEqual(before);

  // The rows of the previous release have no values in columns that only the next one knows.
  expect(await downgrade({ url, target: head })).toMatchObject({ head });
  expect(await readRows(sql)).toEqual(before);
  expect((await upgrade({ url })).applied.toSorted()).toEqual(newer.toSorted());
  expect(await readRows(sql)).toEqual(upgraded);
  expect((await readApplied(sql))?.map(({ id }) => id)).toContain(oneHead(await readRevisions()));
});

/** All rows by table, except the table of revisions and the words for searches, which a trigger derives. */
async function readRows(sql: Sql): Promise<Rows> {
  const tables = await sql`
    select relname as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'revision' order by 1`;
  const rows: Rows = {};
  for (const { name } of tables)
    rows[name] = (
      await sql`select to_jsonb(t) - 'search' as row from ${sql(name)} t order by (to_jsonb(t) - 'search')::text`
    ).map(({ row }) => row);
  return rows;
}

/** The rows without the tables and columns that `before` does not have. */
function inColumnsOf(before: Rows, after: Rows): Rows {
  return Object.fromEntries(
    Object.entries(before).map(([table, [first = {}]]) => {
      const columns = Object.keys(first);
      return [
        table,
        after[table]!.map((row) => Object.fromEntries(columns.map((name) => [name, row[name]]))),
      ];
    }),
  );
}
