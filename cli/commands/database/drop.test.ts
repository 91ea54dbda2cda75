import { describe, expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { head, on } from "../../../tests/support/cli/database.ts";
import { svcOnTerminal } from "../../../tests/support/cli/process.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database/database.ts";

describe("drop", () => {
  test("refuses without a terminal, unless --yes is given", async () => {
    await using database = await createTestDatabase();
    const run = on(database.url);
    const refused = await run("drop");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      /^svc: This drops all \d+ tables of the database svc_test_\w+ on 127\.0\.0\.1:\d+\. There is no terminal for the confirmation: add --yes\n$/,
    );
    expect((await run("current")).stdout).toBe(`${head} (head)\n`);
    expect((await run("drop", "--yes")).stdout).toMatch(/^Dropped \d+ tables of svc_test_\w+\n$/);
    expect((await run("drop", "--yes")).stdout).toMatch(/^Nothing to do: svc_test_\w+ is empty\n$/);
    const sql = openSql(database.url, { max: 1 });
    const left = await sql`select relname from pg_class where relnamespace = 'public'::regnamespace
      union all select proname from pg_proc where pronamespace = 'public'::regnamespace`;
    expect(left).toHaveLength(0);
    await sql.end();
  });

  test("also asks for views and types, and drops nothing of other schemas", async () => {
    await using database = await createEmptyTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    await sql.unsafe(`create type mood as enum ('a'); create materialized view m as select 1 as one; create view v as select * from m;
      create type pair as (a int, b int); create schema other; create table other.t (m mood)`);
    const run = on(database.url);
    expect((await run("drop")).stderr).toContain("svc: This drops 4 objects of the database");
    const refused = await run("drop", "--yes");
    expect(refused.stderr).toBe("svc: Nothing was dropped: column m of table other.t depends on type mood\n");
    expect(await sql`select to_regclass('v') is not null as v`).toMatchObject([{ v: true }]);
    await sql`drop schema other cascade`;
    expect((await run("drop", "--yes")).stdout).toMatch(/^Dropped 4 objects of svc_test_\w+\n$/);
    await sql`create table one (id int) partition by list (id)`;
    await sql`create table part partition of one default`;
    expect((await run("drop")).stderr).toContain("svc: This drops the only table of the database");
    expect((await run("drop", "--yes")).stdout).toMatch(/^Dropped 1 table of svc_test_\w+\n$/);
    expect(await sql`select typname from pg_type where typnamespace = 'public'::regnamespace`).toHaveLength(
      0,
    );
    await sql.end();
  });

  test("drops a table whose default uses a function of another table's rows", async () => {
    await using database = await createEmptyTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    await sql.unsafe(`create table a (id int); create function f(a) returns int language sql as 'select 1';
      create table b (id int default f(null)); create table c (id int)`);
    expect((await on(database.url)("drop", "--yes")).stdout).toMatch(/^Dropped 3 tables of svc_test_\w+\n$/);
    await sql.end();
  });

  test.each([
    ["directly", "create view report.v as select id, name from public.team", "table team"],
    [
      "through a view of ours",
      "create view a as select id from team; create view report.v as select id from a",
      "view a",
    ],
  ])("names the view of another schema that uses a table %s", async (_, views, used) => {
    await using database = await createTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    await sql.unsafe(`create schema report; ${views}`);
    expect(await on(database.url)("drop", "--yes")).toEqual({
      code: 1,
      stdout: "",
      stderr: `svc: Nothing was dropped: view report.v depends on ${used}\n`,
    });
    await sql.end();
  });

  test("keeps objects of an extension", async () => {
    await using database = await createTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    await sql`create extension if not exists pg_trgm`;
    expect((await on(database.url)("drop", "--yes")).code).toBe(0);
    expect(await sql`select extname from pg_extension where extname = 'pg_trgm'`).toHaveLength(1);
    await sql.end();
  });

  test("asks for the database's name on a terminal; another answer changes nothing", async () => {
    await using database = await createTestDatabase();
    const name = new URL(database.url).pathname.slice(1);
    const env = { SVC_DATABASE_URL: database.url };
    const wrong = svcOnTerminal(["database", "drop"], env);
    await wrong.shows(/To continue, type its name/);
    wrong.press("svc\r");
    expect(await wrong.exitCode()).toBe(1);
    expect(wrong.output()).toContain("The name does not match: nothing was changed");
    const stopped = svcOnTerminal(["database", "drop"], env);
    await stopped.shows(/To continue, type its name/);
    stopped.press("\x03");
    expect(await stopped.exitCode()).toBe(130);
    expect((await on(database.url)("current")).stdout).toBe(`${head} (head)\n`);
    const right = svcOnTerminal(["database", "drop"], env);
    await right.shows(/To continue, type its name/);
    right.press(`${name}\r`);
    expect(await right.exitCode()).toBe(0);
    expect(right.output()).toContain(`tables of ${name}`);
  });
});
