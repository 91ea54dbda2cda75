import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { TestClock } from "../../tests/support/clock.ts";
import {
  contentOf,
  createDatabaseOn,
  hostileRevisions,
  insertHostileRows,
  temporaryDirectory,
  using,
} from "../../tests/support/database/backup.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { type DebianServer, startDebianPostgres } from "../../tests/support/database/debian_postgres.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { readRevisions } from "../revision/history.ts";
import { revisionTable } from "../revision/store.ts";
import { upgrade } from "../revision/upgrade.ts";
import { quoted } from "../sql_text.ts";
import { dump } from "./dump.ts";
import { tablesOf } from "./identity.ts";
import { restore } from "./restore.ts";
import { appendSeal, type Seal } from "./seal.ts";

let debian: DebianServer;
beforeAll(async () => {
  debian = await startDebianPostgres();
});
afterAll(() => debian.stop());

function options(url: string, path: string) {
  const common = { env: { PATH: debian.tools }, tools: () => [], release: "1", clock: new TestClock() };
  return { ...common, url, path, revisions: hostileRevisions, confirm: async () => {} };
}

const detailOf = (work: Promise<unknown>) => work.then(String, (error) => error.detail ?? String(error));
const run = (url: string, statements: string) => using(url, (sql) => sql.unsafe(statements));

/** A live database whose content no foreign backup may change. */
async function liveDatabase() {
  const database = await createDatabaseOn(debian.url);
  await upgrade({ url: database.url, revisions: hostileRevisions });
  await insertHostileRows(database.url);
  return database;
}

describe("a table named revision does not identify a database of svc", () => {
  const tables = {
    "an empty one": "create table revision ()",
    "one of another tool":
      "create table revision (version_num text); insert into revision values ('1_tables')",
    "ours, but empty": revisionTable,
    "ours, with revisions of somebody else": `${revisionTable}; insert into revision (id, checksum, down_sql) values ('x', 'y', '')`,
  };
  test.each(Object.entries(tables))("%s: neither dumped nor restored", async (_name, statements) => {
    await using directory = await temporaryDirectory();
    await using foreign = await createDatabaseOn(debian.url);
    await using live = await liveDatabase();
    const before = await contentOf(live.url);
    const path = join(directory.path, "backup");
    await run(foreign.url, `${statements}; create table customer (id int); insert into customer values (1)`);
    for (const format of ["custom", "portable"] as const) {
      expect(await detailOf(dump({ ...options(foreign.url, path), format }))).toMatch(
        /^This (database has no (schema|revision) of svc: there is nothing to back up|release knows none of the revisions in this database: .*)$/,
      );
    }
    await pgDump(foreign.url, path);
    expect(await detailOf(restore(options(live.url, path)))).toStartWith(
      `${path} does not end with the seal`,
    );
    // Even with a seal, its declaration is compared with what the archive contains.
    const declared = ["customer", "revision"].map((name) => ({
      schema: "public",
      name,
      rows: 1,
      bytes: 1e6,
    }));
    await appendSeal(path, sealOf({ revisions: hostileRevisions, tables: declared }));
    expect(await detailOf(restore(options(live.url, path)))).toBe(
      "The restored revisions differ from those of the backup: nothing was changed",
    );
    expect(await contentOf(live.url)).toEqual(before);
  });

  test("our revisions without their tables: neither dumped nor restored", async () => {
    await using directory = await temporaryDirectory();
    await using foreign = await liveDatabase();
    await using live = await liveDatabase();
    const before = await contentOf(live.url);
    const path = join(directory.path, "backup");
    await run(foreign.url, `drop table seeded, egg cascade`);
    const lacks = 'lacks tables that its revisions create: "public"."egg", "public"."seeded"';
    expect(await detailOf(dump(options(foreign.url, path)))).toBe(`This database ${lacks}`);
    await pgDump(foreign.url, path);
    const rows = (await run(foreign.url, "select from revision")).length;
    const revision = { schema: "public", name: "revision", rows, bytes: 1e6 };
    const others = ['Odd "Table"', "many", "chicken", "many_pointer", "parted_a", "parted_rest"].map(
      (name) => ({
        ...{ schema: "public", name, rows: 0, bytes: 1e9 },
      }),
    );
    for (const table of others) {
      const [row] = await run(foreign.url, `select count(*)::int as rows from only ${quoted(table.name)}`);
      table.rows = row!.rows;
    }
    await appendSeal(path, sealOf({ revisions: hostileRevisions, tables: [revision, ...others] }));
    expect(await detailOf(restore(options(live.url, path)))).toBe(`The backup ${lacks}`);
    expect(await contentOf(live.url)).toEqual(before);
  });
});

test("tables predicted from the revisions' SQL match those they create", async () => {
  await using database = await createTestDatabase();
  const { left } = tablesOf(await readRevisions());
  const there = await run(
    database.url,
    `select format('"%s"."%s"', nspname, relname) as name from pg_class c join pg_namespace n on n.oid = relnamespace
     where relkind in ('r', 'p') and not relispartition and nspname !~ '^pg_' and nspname <> 'information_schema'`,
  );
  expect(there.map(({ name }) => name).filter((name) => !left.has(name))).toEqual([]);
  const missing = await run(
    database.url,
    `select n from unnest(array[${[...left].map((name) => `'${name}'`).join(", ")}]) n where to_regclass(n) is null`,
  );
  expect([...missing]).toEqual([]);
});

test("renamed, moved and dropped tables are tracked", () => {
  const revisions = [
    testRevision(
      "1",
      [],
      `create table a (id int); create unlogged table if not exists "b c" (id int); create table x.d (id int);
       create table gone (id int); create table also.gone (id int); create table p partition of a default;
       do $$ begin create table no (id int); end $$;`,
    ),
    testRevision(
      "2",
      ["1"],
      `alter table if exists only a rename to "A"; alter table "b c" rename column id to key;
       alter table x.d set schema y; drop table if exists gone, also.gone cascade; -- drop table "A";
       alter table "A" rename constraint a to b;`,
    ),
  ];
  const { left, ever } = tablesOf(revisions);
  expect([...left].sort()).toEqual(
    ['"public"."A"', '"public"."b c"', '"public"."p"', '"public"."revision"', '"y"."d"'].sort(),
  );
  expect(ever.has('"also"."gone"')).toBeTrue();
});

function sealOf(part: { revisions: Seal["revisions"]; tables?: Seal["tables"] }): Seal {
  const revisions = part.revisions.map(({ id, checksum }) => ({ id, checksum }));
  const base = { created_at: "", release: "", server_version: "", schemas: ["public"], extensions: [] };
  return { ...base, tables: [], ...part, revisions };
}

/** As an administrator would run it. */
async function pgDump(url: string, path: string): Promise<void> {
  const { password, port, username, pathname } = new URL(url);
  const where = ["-h", "127.0.0.1", "-p", port, "-U", username, "-Fc", "-f", path, pathname.slice(1)];
  const { exitCode } = Bun.spawnSync([join(debian.tools, "pg_dump"), ...where], {
    env: { PGPASSWORD: password },
  });
  expect(exitCode).toBe(0);
}
