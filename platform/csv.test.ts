import { expect, test } from "bun:test";
import { csvLine } from "./csv.ts";

test.each([
  [["a", 1, null, ""], "a,1,,"],
  [['say "hi"', "a,b", "two\r\nlines", "one\nmore"], '"say ""hi""","a,b","two\r\nlines","one\nmore"'],
  [[-1.5, "a=1", "dana@example.com", "x; y-z"], "-1.5,a=1,dana@example.com,x; y-z"],
])("%j is a line of RFC 4180", (cells, line) => {
  expect(csvLine(cells)).toBe(`${line}\r\n`);
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u200b=1", "\tx", "＝1"])(
  "%j is no formula for a spreadsheet",
  (text) => {
    expect(csvLine([text]).replace(/^"/, "")).toStartWith("'");
  },
);

test.each([
  ["a;=1", "a;'=1"],
  ["a; =1;b;+2", "a;' =1;b;'+2"],
  ["a\t@b", "a\t'@b"],
  ["a\n-1", '"a\n\'-1"'],
])("%j is none where a spreadsheet splits at other characters", (text, cell) => {
  expect(csvLine([text])).toBe(`${cell}\r\n`);
});
