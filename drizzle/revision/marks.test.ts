import { expect, test } from "bun:test";
import { checkStatements, readMarks } from "./marks.ts";

test("marks are read wherever a line of its own has them", () => {
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

test("a mark that is misspelt would protect nothing: it is refused", () => {
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
])("a revision may not hold %s", (statement) => {
  const sql = `select 1; ${statement}; select 2`;
  expect(() => checkStatements("up.sql", sql, readMarks(sql))).toThrow("a transaction of its own");
});

test("a function body may hold BEGIN, and PREPARE is not PREPARE TRANSACTION", () => {
  const sql = "do $$ begin perform 1; end $$; prepare p as select 1";
  expect(() => checkStatements("up.sql", sql, readMarks(sql))).not.toThrow();
});

test("without a transaction there is one statement", () => {
  const sql = "-- svc: no-transaction\ncreate index concurrently a on t (b); select 1";
  expect(() => checkStatements("up.sql", sql, readMarks(sql))).toThrow("one statement, not 2");
});
