import { expect, test } from "bun:test";
import { checkStatements, isResumable, readMarks } from "./marks.ts";

test("marks are read from any line that contains only a comment", () => {
  const sql = `-- svc: no-transaction
    --svc: data-loss table incident
-- svc: data-loss column public.incident."Odd name"\r
-- svc: data-loss the order of the values
-- svc: irreversible the values are gone
select 1; -- svc: data-loss table behind_a_statement`;
  expect(readMarks(sql)).toEqual({
    transactional: false,
    irreversible: "the values are gone",
    losses: [
      { kind: "table", table: "incident" },
      { kind: "column", table: "public.incident", column: '"Odd name"' },
      { kind: "other", text: "the order of the values" },
    ],
  });
  expect(readMarks("select 1")).toEqual({ transactional: true, losses: [] });
});

test("a misspelt mark is refused, as it would protect nothing", () => {
  expect(() => readMarks("-- svc: no-transactions")).toThrow('unknown mark "-- svc: no-transactions"');
  expect(() => readMarks("-- svc: dataloss table a")).toThrow("unknown mark");
});

test.each([
  "begin",
  "COMMIT",
  "rollback",
  "start transaction",
  "end",
  "savepoint a",
  "prepare transaction 'a'",
])("a revision may not contain %s", (statement) => {
  const sql = `select 1; ${statement}; select 2`;
  expect(() => checkStatements("up.sql", sql, readMarks(sql))).toThrow("already runs in a transaction");
});

test("a function body may contain BEGIN, and PREPARE is not PREPARE TRANSACTION", () => {
  const sql = "do $$ begin perform 1; end $$; prepare p as select 1";
  expect(() => checkStatements("up.sql", sql, readMarks(sql))).not.toThrow();
});

test("a non-transactional revision has one statement, or several that can each be run again", () => {
  const check = (sql: string) => () =>
    checkStatements("up.sql", `-- svc: no-transaction\n${sql}`, { transactional: false, losses: [] });
  expect(check("alter system set work_mem = '5MB'")).not.toThrow();
  expect(check("create index concurrently a on t (b); drop index concurrently b; vacuum t")).not.toThrow();
  expect(check("create index concurrently a on t (b); insert into t values (1)")).toThrow(
    "this one is not: insert into t values (1). Move it to a separate revision",
  );
});

test.each([
  "create index concurrently a on t (b)",
  "create unlogged table if not exists t (a int)",
  "create unique index if not exists a on t (b)",
  "drop table if exists t, u cascade",
  "drop text search configuration if exists c",
  "alter table t add column if not exists a int[] default array[1, 2], drop if exists b",
  "alter table if exists only s.t drop constraint if exists c",
  "alter type kind add value if not exists 'x' before 'y'",
  "reindex table concurrently t",
])("%s can be run again", (statement) => {
  expect(isResumable(statement)).toBe(true);
});

test.each([
  "alter table if exists price alter column cents type bigint using cents * 100",
  "alter table t add column if not exists a int, alter b type bigint using b * 100",
  "alter table if exists t add column a int",
  "alter table t add constraint if_exists check (a > 0)",
  'update t set a = a + 1 where exists (select from u where "if" or if > 0)',
  "create table if (a int); create view v as select from if where exists (select)",
])("%s cannot", (statement) => {
  expect(isResumable(statement)).toBe(false);
});
