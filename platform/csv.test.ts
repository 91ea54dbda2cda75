import { expect, test } from "bun:test";
import { csvLine } from "./csv.ts";

test.each([
  [["a", 1, null, ""], "a,1,,"],
  [['say "hi"', "a,b", "two\r\nlines", "one\nmore"], '"say ""hi""","a,b","two\r\nlines","one\nmore"'],
  [[-1.5, "a=1", "dana@example.com", "x\t="], "-1.5,a=1,dana@example.com,x\t="],
])("%j is a line of RFC 4180", (cells, line) => {
  expect(csvLine(cells)).toBe(`${line}\r\n`);
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u200b=1", "\tx", "＝1"])(
  "%j is no formula for a spreadsheet",
  (text) => {
    expect(csvLine([text]).replace(/^"/, "")).toStartWith("'");
  },
);
