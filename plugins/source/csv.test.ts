import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseCsv, rowFault } from "./csv.ts";

test("parses RFC 4180: quotes, commas, line ends and quotes within quotes", () => {
  const text = 'A, b \r\n1,2\r\n"x,""y""","two\nlines"\n,\n\n"",""';
  expect(parseCsv(text)).toEqual([
    { a: "1", b: "2" },
    { a: 'x,"y"', b: "two\nlines" },
    { a: "", b: "" },
    { a: "", b: "" },
  ]);
});

test("parses a header without records as an empty list", () => {
  expect(parseCsv("term,definition\n")).toEqual([]);
});

test("round-trips any content", () => {
  const cell = fc.oneof(fc.string(), fc.constantFrom("", '"', ",", "\n", "\r\n", "\r", 'a"b', " x "));
  const rows = fc.array(fc.tuple(cell, cell, cell));
  const write = (row: string[], end: string) =>
    row.map((value) => `"${value.replaceAll('"', '""')}"`).join(",") + end;
  fc.assert(
    fc.property(rows, fc.constantFrom("\n", "\r\n"), (table, end) => {
      const text = [["a", "b", "c"], ...table].map((row) => write(row, end)).join("");
      expect(parseCsv(text)).toEqual(table.map(([a, b, c]) => ({ a, b, c })));
    }),
  );
});

test("a row that is too long or too short is a record with the error", () => {
  expect(parseCsv('a,b\n1\n"x\ny",z\n1,2,3').map((row) => row[rowFault] ?? row.a)).toEqual([
    "line 2: 1 fields for 2 columns",
    "x\ny",
    "line 5: 3 fields for 2 columns",
  ]);
});

describe("rejects, with the line number", () => {
  const cases: [string, string, string][] = [
    ["nothing", "", "it is empty"],
    ["an unclosed quote", 'a\n"x', "line 2: an unclosed quote"],
    [
      "an unclosed quote, with the line where its record begins",
      'a\n\n"x\ny\nz',
      "line 3: an unclosed quote",
    ],
    ["a quote that is closed too early", 'a\n"x"y', "line 2: text after a closing quote"],
    ["a quote in the middle", 'a\nx"y"', "line 2: a quote in an unquoted field"],
    ["a column twice", "a,A\n1,2", 'line 1: two columns are called "a"'],
  ];
  for (const [name, text, message] of cases) {
    test(name, () => expect(() => parseCsv(text)).toThrow(message));
  }
});
