import { describe, expect, test } from "bun:test";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { openSql } from "../client.ts";
import { downgrade } from "./downgrade.ts";
import { readApplied } from "./store.ts";
import { upgrade } from "./upgrade.ts";

const base = testRevision(
  "1",
  [],
  "create table report (id int primary key, note text); insert into report values (1, 'a'), (2, null), (3, 'c')",
);

/** The error of an upgrade with `up`, line by line. */
async function failureOf(up: string, manifest = {}): Promise<string[]> {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions: [base] });
  const revisions = [base, testRevision("2", ["1"], up, "", manifest)];
  const error = await upgrade({ url, revisions }).then(
    () => undefined,
    (reason: Error) => reason,
  );
  const sql = openSql(url, { max: 1 });
  expect((await readApplied(sql))?.map(({ id }) => id)).toEqual(["1"]);
  await sql.end();
  return error?.message.split("\n") ?? [];
}

const next =
  'Nothing of revision 2 was applied; earlier revisions remain applied. Correct the cause, then run: svc database upgrade (docs/release.md, "If the upgrade fails")';

describe("a failing revision reports line, reason, statement and what to do", () => {
  const filler = Array.from({ length: 300 }, (_, at) => `create table filler_${at} (id int); -- 'x;`);
  test.each([
    [
      "for an error without a position",
      [...filler, "", "-- why", "alter table report", "  alter column note set not null;", "select 1;"],
      'up.sql of revision 2, line 303: column "note" of relation "report" contains null values',
      "alter table report alter column note set not null",
    ],
    [
      "for an error after characters outside the Basic Multilingual Plane",
      ["select '🚒🚒🚒';", "select '🚒',", "  missing;", "select 1;"],
      'up.sql of revision 2, line 3: column "missing" does not exist',
      "select '🚒', missing",
    ],
    [
      "in the last statement",
      ["select 1;", "alter table report add primary key (note)"],
      'up.sql of revision 2, line 2: multiple primary keys for table "report" are not allowed',
      "alter table report add primary key (note)",
    ],
    [
      "in a function",
      ["select 1;", "", "do $$ begin", "  raise exception 'no; not this';", "end $$;"],
      "up.sql of revision 2, line 3: no; not this (PL/pgSQL function inline_code_block line 2 at RAISE)",
      "do $$ begin raise exception 'no; not this'; end $$",
    ],
    [
      "after strings that only seem to end",
      [
        "select E'it\\'s; \\",
        "', E'a'",
        "  -- more",
        "  'b\\';';",
        "select U&'\\0041', $a$ ; $a$; drop table none;",
      ],
      'up.sql of revision 2, line 5: table "none" does not exist',
      "drop table none",
    ],
    [
      "for a missing schema other than public",
      ["create table nowhere.a (id int);"],
      'up.sql of revision 2, line 1: schema "nowhere" does not exist',
      "create table nowhere.a (id int)",
    ],
    [
      "when other objects depend on the dropped one",
      [
        "create view v as select note from report;",
        "-- svc: no-data-loss x",
        "alter table report drop note;",
      ],
      "up.sql of revision 2, line 3: cannot drop column note of table report because other objects depend on it. view v depends on column note of table report",
      "alter table report drop note",
    ],
    [
      "for a long statement, shortened",
      [`insert into report values ${Array.from({ length: 90 }, (_, at) => `(${at})`).join(", ")};`],
      'up.sql of revision 2, line 1: duplicate key value violates unique constraint "report_pkey"',
      `${`insert into report values ${Array.from({ length: 90 }, (_, at) => `(${at})`).join(", ")}`.slice(0, 120)}…`,
    ],
  ])("%s", async (_, lines, reason, statement) => {
    expect(await failureOf(lines.join("\n"))).toEqual([reason, `  ${statement}`, next]);
  });

  test("when the user lacks the privilege", async () => {
    await using database = await createEmptyTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    const url = new URL(database.url);
    const role = url.pathname.slice(1);
    await sql.unsafe(
      `create role "${role}" login password 'guest'; grant all on schema public to "${role}"; create table theirs (id int)`,
    );
    Object.assign(url, { username: role, password: "guest" });
    const revision = testRevision("1", [], "create table a (id int);\nalter table theirs add b int;");
    await expect(upgrade({ url: url.href, revisions: [revision] })).rejects.toThrow(
      "up.sql of revision 1, line 2: must be owner of table theirs. PostgreSQL does not let this user do that: it must own the database's schema\n  alter table theirs add b int\n",
    );
    await sql.unsafe(`drop owned by "${role}"; drop role "${role}"`);
    await sql.end();
  });

  test("when someone cancels it", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    const revision = testRevision(
      "1",
      [],
      "select 1;\nselect pg_cancel_backend(pg_backend_pid()), pg_sleep(10);",
    );
    await expect(upgrade({ url, revisions: [revision] })).rejects.toThrow(
      "up.sql of revision 1, line 2: canceling statement due to user request.",
    );
  });

  test("when its connection breaks", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    const revision = testRevision("1", [], "select 1;\nselect pg_terminate_backend(pg_backend_pid());");
    const { host, pathname } = new URL(url);
    await expect(upgrade({ url, revisions: [revision] })).rejects.toThrow(
      `up.sql of revision 1, line 2: PostgreSQL at ${host}, database ${pathname.slice(1)}, closed the connection: run it again\n  select pg_terminate_backend(pg_backend_pid())\nThe revision is applied as a whole or not at all: svc database upgrade continues from there`,
    );
  });

  test("when a table stays in use", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    const revision = testRevision(
      "1",
      [],
      "select 1;\nset local lock_timeout = 1;\nalter table busy add a int;",
    );
    const sql = openSql(url, { max: 1 });
    await sql.unsafe("create table busy (id int)");
    await sql.unsafe("begin; lock table busy");
    await expect(upgrade({ url, revisions: [revision] })).rejects.toThrow(
      "up.sql of revision 1, line 3: canceling statement due to lock timeout. A table that must change stayed locked: try again when the database is less busy\n  alter table busy add a int\n",
    );
    await sql.end();
  });

  test("without a transaction", async () => {
    const lines = [
      "-- svc: no-transaction",
      "create unique index concurrently report_note",
      "  on report ((note is null));",
    ];
    expect(await failureOf(lines.join("\n"))).toEqual([
      'up.sql of revision 2, line 2: could not create unique index "report_note"',
      "  create unique index concurrently report_note on report ((note is null))",
      next,
    ]);
  });
});

test("a failing downgrade reports that the revision is still applied", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const revision = testRevision(
    "2",
    ["1"],
    "select 1",
    "select 1;\nalter table report alter note set not null;",
  );
  await upgrade({ url, revisions: [base, revision] });
  await expect(downgrade({ url, revisions: [base, revision] })).rejects.toThrow(
    'down.sql of revision 2, line 2: column "note" of relation "report" contains null values\n  alter table report alter note set not null\nRevision 2 is still applied, as it was. Correct the cause, then run: svc database downgrade',
  );
});
