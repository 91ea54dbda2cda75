import { expect, test } from "bun:test";
import { splitStatements, wordsOf } from "./statements.ts";

const split = (sql: string) => splitStatements(sql).map(({ text }) => text);

test("splits at semicolons, and skips empty statements", () => {
  expect(split("select 1; select 2 ;\n\n;; select 3")).toEqual(["select 1", "select 2", "select 3"]);
  expect(split("")).toEqual([]);
  expect(split(" ;\n-- nothing;\n/* nor; this */")).toEqual([]);
});

test.each([
  ["a string", "insert into t values ('a;b', 'it''s;')"],
  ["an escape string", String.raw`insert into t values (E'it\';s')`],
  ["a string that ends in a backslash", String.raw`insert into t values ('c:\;')`],
  ["a quoted name", 'alter table "a;b""c;" add column "x;y" int'],
  ["a dollar quote", "create function f() returns int language plpgsql as $$ begin; return 1; end; $$"],
  ["a tagged dollar quote", "do $x$ begin perform '$$;'; end $x$"],
  ["a line comment", "select 1 -- a; b\n + 1"],
  ["a block comment, nested", "select /* a; /* b; */ c; */ 1"],
  [
    "a function's SQL body",
    "create function f() returns int begin atomic; select case when true then 1 end; end",
  ],
  ["a rule's parentheses", "create rule r as on insert to t do also (select 1; select 2)"],
  ["a name with a dollar sign", "select a$b$c"],
  ["an unfinished string", "select 'a; b"],
])("a semicolon in %s does not split", (_, statement) => {
  expect(split(statement)).toEqual([statement]);
  if (statement !== "select 'a; b") expect(split(`${statement};select 2`)).toEqual([statement, "select 2"]);
});

test("a line comment also ends at a lone carriage return, as in PostgreSQL", () => {
  expect(split("create table t (id int); -- x\rcommit; select 1")).toHaveLength(3);
});

test("comments stay with the statement after them, which reports where it starts", () => {
  const sql = "-- one\nselect 1;\n\n-- two\nselect 2;";
  expect(splitStatements(sql)).toEqual([
    { text: "-- one\nselect 1", offset: 0, start: sql.indexOf("select 1") },
    { text: "-- two\nselect 2", offset: sql.indexOf("-- two"), start: sql.indexOf("select 2") },
  ]);
});

test("a table called atomic, or a CASE outside a function, does not suppress splitting", () => {
  expect(split("begin; select case when a then b end; commit")).toHaveLength(3);
  expect(split("create table atomic (a int); select 1")).toHaveLength(2);
});

test.each([
  [String.raw`U&"n\006fte"`, '"note"'],
  [String.raw`u&"\+00006eote"`, '"note"'],
  [String.raw`U&"a\\b""c;"`, String.raw`"a\b""c;"`],
  [`U&"n!006fte" uescape '!'`, '"note"'],
  [String.raw`U&"\0022"`, '""""'],
  [String.raw`U&"\+ffffff"`, String.raw`"\+ffffff"`],
])("a name with Unicode escapes is one word: %s", (written, name) => {
  expect(wordsOf(`drop table ${written}`)).toEqual(["DROP", "TABLE", name]);
  expect(split(`drop table ${written};select 1`)).toEqual([`drop table ${written}`, "select 1"]);
});

test("keywords are capitalised, quoted names stay as written", () => {
  expect(wordsOf('-- x\ncreate Index concurrently "Odd name" on t (a)')).toEqual([
    "CREATE",
    "INDEX",
    "CONCURRENTLY",
    '"Odd name"',
    "ON",
    "T",
    "(",
    "A",
    ")",
  ]);
});
