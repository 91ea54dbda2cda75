import { expect, test } from "bun:test";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { openSql } from "../client.ts";
import { canonicalSchema, difference } from "./canonical.ts";

test.each<[string, string, ...(string | RegExp)[]]>([
  [
    "a domain",
    "create domain short as text check (length(value) < 5)",
    "+ domain short text short_check CHECK",
  ],
  ["an unlogged table", "alter table audit_log set unlogged", "+ table audit_log unlogged"],
  [
    "a line of a function that has the same line elsewhere",
    "create or replace function a() returns int language sql as 'select 1;\nselect 1;\nselect 2;'",
    "+ function CREATE OR REPLACE FUNCTION public.a()",
  ],
  ["a disabled trigger", "alter table team disable trigger svc_team_search", /^\+ trigger team .* disabled$/],
  ["a trigger that replicas run, too", "alter table team enable always trigger svc_team_search", / always$/],
  [
    "another collation",
    'alter table team alter name type text collate "C"',
    '+ column team.name text collate "C" not null',
  ],
  [
    "row-level security that includes the owner",
    "alter table team force row level security",
    "+ table team force row level security",
  ],
  [
    "a composite type",
    "create type pair as (a int, b text)",
    "+ composite type pair",
    "+ column pair.a integer",
    "+ column pair.b text",
  ],
  [
    "the bounds of a partition",
    "create table parted (a int) partition by list (a); create table part partition of parted for values in (1)",
    "+ table parted partition by LIST (a)",
    "+ table part inherits parted FOR VALUES IN (1)",
    "+ column parted.a integer",
    "+ column part.a integer",
  ],
])("a difference is found: %s", async (_, change, ...lines) => {
  await using database = await createTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  await sql`create function a() returns int language sql as 'select 1;\nselect 2;'`;
  const before = await canonicalSchema(sql);
  await sql.unsafe(change);
  const found = difference(before, await canonicalSchema(sql)).filter((one) => one.startsWith("+"));
  expect(found).toHaveLength(lines.length);
  for (const line of lines) expect(found).toContainEqual(expect.stringMatching(line));
  await sql.end();
});
