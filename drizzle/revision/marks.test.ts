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
    checkStatements("up.sql", `-- svc: no-transaction\n${sql}`, { transactional: false });
  expect(check("alter system set work_mem = '5MB'")).not.toThrow();
  expect(check("create index concurrently a on t (b); drop index concurrently b; vacuum t")).not.toThrow();
  expect(check("create index concurrently a on t (b); insert into t values (1)")).toThrow(
    "this one is not: insert into t values (1). Move it to a separate revision",
  );
});

test.each([
  ["create index concurrently a on t (b)", true],
  ["drop index concurrently if exists s.a", true],
  ["reindex table concurrently t", true],
  ["alter table t add column if not exists a int", false],
  ["insert into t values (1)", false],
])("whether it can be run again: %s", (statement, expected) => {
  expect(isResumable(statement)).toBe(expected);
});

test.each(["drop table if exists a", "-- svc: data-loss table a\ndo $$ begin delete from a; commit; end $$"])(
  "without a transaction, nothing may be lost: %s",
  (sql) => {
    expect(() => checkStatements("up.sql", sql, { transactional: false })).toThrow("so it may not lose data");
  },
);
