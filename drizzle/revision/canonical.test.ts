import { expect, test } from "bun:test";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { openSql } from "../client.ts";
import { canonicalSchema, difference } from "./canonical.ts";

test.each([
  ["a rule", "create rule hold as on delete to team do instead nothing", "+ rule team CREATE RULE hold AS"],
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
])("a difference is found: %s", async (_, change, line) => {
  await using database = await createTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  const before = await canonicalSchema(sql);
  await sql.unsafe(change);
  const found = difference(before, await canonicalSchema(sql)).filter((one) => one.startsWith("+"));
  expect(found).toHaveLength(1);
  expect(found[0]).toMatch(line);
  await sql.end();
});
