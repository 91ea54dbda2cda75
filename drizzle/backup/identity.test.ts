import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createDatabaseOn, temporaryDirectory, using } from "../../tests/support/database/backup.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { useDebianBackups } from "../../tests/support/database/debian_postgres_backup.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { readRevisions } from "../revision/history.ts";
import { revisionTable } from "../revision/store.ts";
import { upgrade } from "../revision/upgrade.ts";
import { dump } from "./dump.ts";
import { tablesOf } from "./identity.ts";

const backups = useDebianBackups();
const { options, liveDatabase } = backups;

const detailOf = (work: Promise<unknown>) => work.then(String, (error) => error.detail ?? String(error));
const run = (url: string, statements: string) => using(url, (sql) => sql.unsafe(statements));

describe("a table named revision does not identify a database of svc", () => {
  const isOther =
    "The table public.revision is not the table where svc records revisions: rename it, or use another database";
  const tables = {
    "an empty one": ["create table revision ()", isOther],
    "one of another tool": [
      "create table revision (version_num text); insert into revision values ('1_tables')",
      isOther,
    ],
    "ours, but empty": [revisionTable, "This database has no revision of svc: there is nothing to back up"],
    "ours, with revisions of somebody else": [
      `${revisionTable}; insert into revision (id, checksum, down_sql) values ('x', 'y', '')`,
      "This release knows none of the revisions in this database: dump it with the newer release that created them",
    ],
  };
  test.each(Object.entries(tables))("%s: not dumped", async (_name, [statements, reason]) => {
    await using directory = await temporaryDirectory();
    await using foreign = await createDatabaseOn(backups.debian.url);
    const path = join(directory.path, "backup");
    await run(foreign.url, `${statements}; create table customer (id int); insert into customer values (1)`);
    expect(await detailOf(dump(options(foreign.url, path)))).toBe(reason!);
  });

  test("our revisions without their tables: not dumped", async () => {
    await using directory = await temporaryDirectory();
    await using foreign = await liveDatabase();
    const path = join(directory.path, "backup");
    await run(foreign.url, `drop table seeded, egg cascade`);
    const lacks = 'lacks tables that its revisions create: "public"."egg", "public"."seeded"';
    expect(await detailOf(dump(options(foreign.url, path)))).toBe(`This database ${lacks}`);
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
    ['"public"."A"', '"public"."b c"', '"public"."revision"', '"y"."d"'].sort(),
  );
  expect(ever.has('"also"."gone"') && ever.has('"public"."p"')).toBeTrue();
});

describe("a database at the head of its revisions is dumped, whatever these do to tables", () => {
  const schema = "create schema app; create table app.orders (id int)";
  const parted = `create table p (id int) partition by range (id);
    create table p1 partition of p for values from (1) to (2)`;
  const routine = (body: string) =>
    `create function purge() returns void language plpgsql as $$ begin ${body} end $$`;
  const cases: Record<string, string[]> = {
    "a temporary table": [
      "create temp table backfill as select 1",
      "create temporary table if not exists b ()",
    ],
    "one that is dropped on commit": ["create temp table backfill on commit drop as select 1"],
    "one in pg_temp": ["create table pg_temp.backfill ()"],
    "one that hides another": ["create table a ()", "create temp table a (); alter table a rename to b"],
    "a schema that is dropped": [schema, "drop schema if exists app cascade"],
    "a schema that is renamed": [schema, "alter schema app rename to app2"],
    "a schema that is renamed, and a table in it": [
      schema,
      "alter schema app rename to app2; alter table app2.orders rename to sales",
    ],
    "a partition dropped with its parent": [parted, "drop table p"],
    "a table attached to a parent that is dropped": [
      parted,
      `create table p2 (id int); alter table p attach partition p2 for values from (2) to (3)`,
      "drop table p",
    ],
    "a table dropped with the one that it inherits from": [
      "create table base (); create table child () inherits (base)",
      "create table other (); alter table other inherit base",
      "drop table base cascade",
    ],
    "a table dropped with its type": [
      "create type row_type as (id int); create table typed of row_type",
      "drop type row_type cascade",
    ],
    search_path: ["create schema app; set search_path = app; create table orders (id int)"],
    "search_path, for this transaction": [
      "create schema app; set local search_path to app, public; create table orders (id int)",
    ],
    "search_path, and a table that is dropped": [schema, "set schema 'app'; drop table orders"],
    "a DO block": ["create table a ()", "do $$ begin execute format('drop table %I', 'a'); end $$"],
    "a routine": [routine("drop table a, b;"), "create table a (); create table b ()", "select purge()"],
    "DROP OWNED": [
      "create role ROLE; set role none; create table a (); alter table a owner to ROLE",
      "drop owned by ROLE",
    ],
  };
  test.each(Object.entries(cases))("%s", async (_name, ups) => {
    await using directory = await temporaryDirectory();
    await using database = await createDatabaseOn(backups.debian.url);
    const role = `gone_${crypto.randomUUID().slice(0, 8)}`;
    const revisions = ups.map((up, index) =>
      testRevision(`${index}`, index === 0 ? [] : [`${index - 1}`], up.replaceAll("ROLE", role)),
    );
    await upgrade({ url: database.url, revisions, allowDataLoss: true });
    const path = join(directory.path, "backup");
    try {
      expect(await dump({ ...options(database.url, path), revisions })).toMatchObject({
        heads: [`${ups.length - 1}`],
      });
    } finally {
      await run(database.url, `drop role if exists ${role}`);
    }
  });
});

test("a table that plainly remains is required, among statements that cannot be followed", () => {
  const ups = [
    "create schema app; create table app.gone (); create table a (); create temp table b as select from a",
    "set search_path = app; create table public.c (); create table unknown ()",
    "create table d (); drop schema app cascade; do $$ begin update a set x = 1; commit; end $$",
  ];
  const revisions = ups.map((up, index) => testRevision(`${index}`, index === 0 ? [] : [`${index - 1}`], up));
  const names = ["a", "c", "d", "revision"].map((name) => `"public"."${name}"`);
  expect([...tablesOf(revisions).left].sort()).toEqual(names);
});
