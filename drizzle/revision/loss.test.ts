import { describe, expect, test } from "bun:test";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { openSql } from "../client.ts";
import { describeLosses } from "./loss.ts";
import { downgradeScript, upgradeScript } from "./script.ts";
import { splitStatements } from "./statements.ts";
import { readApplied } from "./store.ts";
import { upgrade } from "./upgrade.ts";

/** A database with `first` applied and some rows. */
async function filled(first: string, rows: string) {
  const database = await createEmptyTestDatabase();
  const { url } = database;
  const base = testRevision("1", [], first);
  await upgrade({ url, revisions: [base] });
  const sql = openSql(url, { max: 1 });
  await sql.unsafe(rows);
  return {
    url,
    sql,
    base,
    applied: async () => ((await readApplied(sql)) ?? []).map(({ id }) => id),
    [Symbol.asyncDispose]: async () => {
      await sql.end();
      await database[Symbol.asyncDispose]();
    },
  };
}

const table = 'create table report (id int primary key, note text, "order" text)';

describe("upgrade", () => {
  test.each([
    [
      "a column with values",
      "drop table if exists none; alter table report drop column note",
      "the values of report.note",
    ],
    ["a table with rows", "drop table report", "the rows of report"],
    ["all rows of a table", "truncate report", "the rows of report"],
    [
      "a column whose name is a reserved word",
      'alter table report drop "order"',
      'the values of report."order"',
    ],
    [
      "a column written with Unicode escapes",
      String.raw`alter table report drop column U&"n\006fte"`,
      "the values of report.note",
    ],
    [
      "a marked loss",
      "-- svc: data-loss column report.note where length(note) > 2 -- long notes\nupdate report set note = left(note, 2)",
      "the values of report.note: long notes",
    ],
    [
      "a column renamed in the same revision",
      "alter table report rename note to remark;\nalter table report drop column remark",
      "the values of report.remark",
    ],
    [
      "a dropped column after a dropped NOT NULL",
      "alter table only report alter column note drop not null, drop column if exists note cascade",
      "the values of report.note",
    ],
  ])("stops before %s, and continues with allowDataLoss", async (_, up, what) => {
    await using db = await filled(table, "insert into report values (1, 'abc', 'x')");
    const { url, base } = db;
    const revisions = [base, testRevision("2", ["1"], up)];
    const refused = upgrade({ url, revisions });
    expect(refused).rejects.toThrow(
      `This would lose ${what}. Make a backup (svc database dump), then: svc database upgrade --allow-data-loss`,
    );
    await refused.catch(() => {});
    expect(await db.applied()).toEqual(["1"]);
    expect([...(await db.sql`select note, "order" from report`)]).toEqual([{ note: "abc", order: "x" }]);
    expect((await upgrade({ url, revisions, allowDataLoss: true })).applied).toEqual(["2"]);
  });

  test.each([
    ["a column without values", "alter table report drop note", "insert into report values (1)"],
    ["a table without rows", "drop table report", ""],
    [
      "a column that holds its default",
      "alter table report drop priority",
      "alter table report add priority int not null default 3; insert into report values (1)",
    ],
    [
      "values marked as kept elsewhere",
      "-- svc: no-data-loss copied to the log\nalter table report drop note",
      "insert into report values (1, 'abc')",
    ],
    [
      "values for which the condition does not hold",
      "-- svc: data-loss column report.note where length(note) > 3\nalter table report alter note type varchar(3)",
      "insert into report values (1, 'abc')",
    ],
    [
      "a column that our triggers derive from others",
      "alter table team drop column search",
      "create table team (search tsvector); insert into team values ('lamp')",
    ],
    [
      "a constraint",
      "alter table report drop constraint report_pkey",
      "insert into report values (1, 'abc')",
    ],
  ])("does not stop for %s", async (_, up, rows) => {
    await using db = await filled(table, rows);
    const revisions = [db.base, testRevision("2", ["1"], up)];
    expect((await upgrade({ url: db.url, revisions })).applied).toEqual(["2"]);
  });

  const objects = `create schema app; create table app.orders (id int); create table app.none (id int);
    create table app.lines (id int) partition by range (id);
    create table app.lines_1 partition of app.lines for values from (1) to (9);
    create table log (id int) partition by range (id);
    create table app.log_1 partition of log for values from (1) to (9);
    create type mood as enum ('good', 'bad'); create domain feeling as mood; create type pair as (a int, b text);
    create extension citext;
    create table area (id int); create table town () inherits (area);
    create table felt (place area, "How" mood default 'good', now feeling, many mood[], two pair, name citext, word text);
    create view seen as select 1 as x; create view seen_again as select * from seen; create table kept (s seen_again);
    create collation nordic (locale = 'C'); create table names (n text collate nordic);
    create function plus(float8, float8) returns float8 language sql immutable return $1 - $2;
    create type span as range (subtype = float8, subtype_diff = plus); create table spans (s span);
    create table country (id int primary key, name text); create table city (country int references country);
    create view named as select id, name from country group by id; create table visits (c named);
    create type shape as (x int, y int); create table shapes of shape`;
  test.each([
    [
      "drop schema if exists app cascade",
      "the rows of app.lines, the rows of app.log_1, the rows of app.orders",
    ],
    ["drop type mood cascade", 'the values of felt."How", the values of felt.now'],
    ["drop domain if exists feeling cascade", "the values of felt.now"],
    ["drop type pair cascade", "the values of felt.two"],
    ["drop extension citext cascade", "the values of felt.name"],
    ["drop view seen cascade", "the values of kept.s"],
    ["drop collation nordic cascade", "the values of names.n"],
    ["drop function plus(float8, float8) cascade", "the values of spans.s"],
    [
      "drop table if exists absent, area cascade",
      "the rows of area, the values of felt.place, the rows of town",
    ],
    ["truncate country cascade", "the rows of city"],
    ["alter table only country add x int, drop constraint country_pkey cascade", "the values of visits.c"],
    ["alter type shape drop attribute y cascade", "the values of shapes.y"],
  ])("stops before tables and columns that hold data: %s", async (up, what) => {
    await using db = await filled(objects, "insert into felt (word) values ('x')");
    const { url, base, sql } = db;
    const revisions = [base, testRevision("2", ["1"], up)];
    await sql.unsafe(`insert into app.orders values (1); insert into app.lines values (1); insert into log values (1);
      insert into town values (1); insert into felt values (row(1), 'bad', 'bad', null, (1, 'b'), 'y');
      insert into kept values (row(1)); insert into names values ('a'); insert into spans values ('[1,2]');
      insert into city values (null); insert into visits values ((1, 'a')); insert into shapes values (1, 2)`);
    await expect(upgrade({ url, revisions })).rejects.toThrow(`This would lose ${what}. Make`);
    expect(await db.applied()).toEqual(["1"]);
    await sql.unsafe(`truncate app.orders, app.lines, log, town, kept, names, spans, city, visits, shapes;
      delete from felt where word is null`);
    expect((await upgrade({ url, revisions })).applied).toEqual(["2"]);
  });

  test("stops before a role's tables that hold data", async () => {
    await using db = await filled(table, "insert into report values (1)");
    const { url, base, sql } = db;
    const role = new URL(url).pathname.slice(1);
    await sql.unsafe(`create role "${role}"; alter table report owner to "${role}"`);
    const revisions = [base, testRevision("2", ["1"], `drop owned by "${role}"`)];
    await expect(upgrade({ url, revisions })).rejects.toThrow("This would lose the rows of report. Make");
    await sql.unsafe("truncate report");
    expect((await upgrade({ url, revisions })).applied).toEqual(["2"]);
    await sql.unsafe(`drop role "${role}"`);
  });

  test.each([
    ["a value other than the default", "int not null default 3", "4"],
    ["a default that differs for each row", "uuid not null default gen_random_uuid()", "default"],
    ["a null among defaults", "int default 3", "default), (2, null, null, null"],
  ])("stops before %s", async (_, type, value) => {
    await using db = await filled(
      table,
      `alter table report add extra ${type}; insert into report values (1, null, null, ${value})`,
    );
    const revisions = [db.base, testRevision("2", ["1"], "alter table report drop extra")];
    expect(upgrade({ url: db.url, revisions })).rejects.toThrow(
      "This would lose the values of report.extra.",
    );
  });

  test.each([
    ["a table", "drop table report", "the rows of report"],
    ["a column", "alter table report drop note", "the values of report.note"],
    [
      "a marked loss",
      "-- svc: data-loss column report.note where true\nalter table report drop note",
      "the values of report.note: true",
    ],
  ])("stops before %s whose rows the user cannot see", async (_, up, what) => {
    await using db = await filled(table, "insert into report values (1, 'abc', 'x')");
    const url = new URL(db.url);
    const role = url.pathname.slice(1);
    await db.sql.unsafe(`create role "${role}" login password 'x'; grant all on schema public to "${role}";
      alter table revision owner to "${role}"; alter table report owner to "${role}";
      alter table report enable row level security; alter table report force row level security`);
    Object.assign(url, { username: role, password: "x" });
    const revisions = [db.base, testRevision("2", ["1"], up)];
    await expect(upgrade({ url: url.href, revisions })).rejects.toThrow(
      `This would lose ${what} (this user cannot read all of them).`,
    );
    const update = [db.base, testRevision("2", ["1"], "update report set note = ''")];
    await expect(upgrade({ url: url.href, revisions: update })).rejects.toThrow(
      "Row-level security hides rows from this user: use one with BYPASSRLS",
    );
    await upgrade({ url: url.href, revisions, allowDataLoss: true });
    await db.sql.unsafe(`drop owned by "${role}"; drop role "${role}"`);
  });

  test("a new database has nothing to lose: a later revision may drop what an earlier one wrote", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    const seed = testRevision("1", [], "create table t (id int); insert into t values (1)");
    const revisions = [seed, testRevision("2", ["1"], "drop table t")];
    expect((await upgrade({ url, revisions })).applied).toEqual(["1", "2"]);
  });

  test("a database with other tables does not count as new", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    const sql = openSql(url, { max: 1 });
    await sql.unsafe("create table t (id int); insert into t values (1)");
    await sql.end();
    expect(upgrade({ url, revisions: [testRevision("1", [], "drop table t")] })).rejects.toThrow(
      "the rows of t",
    );
  });

  test("rows written while it waits for the table are noticed", async () => {
    await using db = await filled(table, "");
    const { url, sql, base } = db;
    // The check of the whole plan waits for no lock where a mark names the table.
    const drop = "-- svc: data-loss table report\ndrop table report";
    const revisions = [base, testRevision("2", ["1"], drop)];
    await sql.unsafe("begin; insert into report values (1)");
    const { promise: retried, resolve } = Promise.withResolvers<string>();
    const change = upgrade({ url, revisions, notice: resolve });
    await retried;
    await sql.unsafe("commit");
    await expect(change).rejects.toThrow("This would lose the rows of report.");
    expect(await db.applied()).toEqual(["1"]);
  });

  test("the script for psql stops there too, unless data loss is allowed", async () => {
    await using db = await filled(table, "insert into report values (1, 'abc')");
    const { url, sql, base } = db;
    const revisions = [base, testRevision("2", ["1"], "alter table report drop column note;", "select 1")];
    const play = async (script: string) => {
      for (const { text } of splitStatements(script)) await sql.unsafe(text);
    };
    const refused = play(await upgradeScript({ url, revisions }));
    expect(refused).rejects.toThrow("This would lose the values of report.note");
    await refused.catch(() => {});
    await sql.unsafe("rollback");
    await play(await upgradeScript({ url, revisions, allowDataLoss: true }));
    expect(await db.applied()).toEqual(["1", "2"]);
    expect(await downgradeScript({ url, revisions })).not.toContain("svc_loss");
  });
});

test("what a revision loses is read from its marks, or else found by trying what may remove something", () => {
  expect(
    describeLosses(`drop table if exists a, "b c";
      alter table t add e int, drop f, alter j drop default;
      alter table t drop constraint c, alter j drop not null, alter j drop default;
      truncate k;
      -- svc: data-loss what is longer
      update t set m = left(m, 3);
      create function n() returns void language sql as 'drop table o';
      -- svc: no-data-loss empty since 2020
      drop table p;
      drop index q; drop schema r cascade;
      alter table v drop constraint w cascade`),
  ).toEqual([
    'everything that `drop table if exists a, "b c"` removes',
    "everything that `alter table t add e int, drop f, alter j drop default` removes",
    "everything that `truncate k` removes",
    "what is longer",
    "everything that `drop schema r cascade` removes",
    "everything that `alter table v drop constraint w cascade` removes",
  ]);
});
