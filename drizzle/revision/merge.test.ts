import { expect, test } from "bun:test";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { openSql } from "../client.ts";
import { tryOrders } from "./merge.ts";

const base = testRevision("1", [], "create table t (id int, a int, b int)");
const head = (id: string, up: string) => testRevision(id, ["1"], up);

/** The error for these heads; undefined when they can be merged. */
async function mergeError(...heads: ReturnType<typeof testRevision>[]): Promise<string | undefined> {
  await using database = await createEmptyTestDatabase();
  return await tryOrders(database.url, [base, ...heads]).then(
    () => undefined,
    (error: Error) => error.message,
  );
}

test("heads that do not touch each other can be merged", async () => {
  const heads = [
    head("2a", "alter table t add c int"),
    head("2b", "create index t_b on t (b)"),
    head("2c", "create table u (id int)"),
  ];
  expect(await mergeError(...heads)).toBeUndefined();
});

test("a head that drops a column indexed by another conflicts, whichever name sorts first", async () => {
  const drop = "alter table t drop column a";
  const index = "select 1;\ncreate index t_a on t (a)";
  const refusal = (later: string, earlier: string) =>
    [
      `The heads cannot be merged: ${later} cannot be applied after ${earlier}`,
      `  up.sql of revision ${later}, line 2: column "a" does not exist`,
      "    create index t_a on t (a)",
      `Make one follow the other: delete drizzle/revisions/${later} and write it again with svc database revision, after the one it conflicts with`,
    ].join("\n");
  expect(await mergeError(head("2a", drop), head("2b", index))).toBe(refusal("2b", "2a"));
  expect(await mergeError(head("2a", index), head("2b", drop))).toBe(refusal("2a", "2b"));
});

test("a head that needs what another creates conflicts", async () => {
  const heads = [head("2a", "create table u (id int)"), head("2b", "create index u_id on u (id)")];
  expect(await mergeError(...heads)).toStartWith(
    'The heads cannot be merged: 2b cannot be applied by itself\n  up.sql of revision 2b, line 1: relation "u" does not exist\n',
  );
});

test("heads whose order changes the resulting schema conflict", async () => {
  const rename = "alter table t rename a to c";
  const either =
    "do $$ begin if exists (select from pg_attribute where attrelid = 't'::regclass and attname = 'a') then create table x (id int); end if; end $$";
  expect(await mergeError(head("2a", rename), head("2b", either))).toMatch(
    /^The heads cannot be merged: 2b, 2a give a different schema than 2a, 2b:\n {2}\+ column x\.id integer\n {2}\+ table x\nMake one follow/,
  );
});

test("without the right to create a database, the error says so", async () => {
  await using database = await createEmptyTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  const url = new URL(database.url);
  const role = url.pathname.slice(1);
  await sql.unsafe(`create role "${role}" login password 'guest'`);
  Object.assign(url, { username: role, password: "guest" });
  await expect(tryOrders(url.href, [base, head("2a", "select 1"), head("2b", "select 1")])).rejects.toThrow(
    "svc database merge needs the right to create a database",
  );
  await sql.unsafe(`drop role "${role}"`);
  await sql.end();
});
