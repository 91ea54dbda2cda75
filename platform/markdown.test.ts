import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { literally, plain } from "./markdown.ts";

const marks = [..."\\`*_[]<>~|"];
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...marks, "\\_", "``", "&lt;", "!", "(", "#"), fc.string()), {
    maxLength: 12,
  })
  .map((parts) => parts.join(""));

test("escaped text reads as originally written", () => {
  fc.assert(
    fc.property(fc.array(hostile, { maxLength: 4 }), (titles) => {
      const text = titles.map((title) => `- **INC-1: ${literally(title)} (2 h)**`).join("\n");
      expect(plain(text)).toBe(titles.map((title) => `- INC-1: ${title} (2 h)`).join("\n"));
    }),
  );
});

describe("without escapes and bold marks", () => {
  test.each([
    ["bold", String.raw`**a\*\*b** and \*\*c\*\*, **d**`, "a**b and **c**, d"],
    ["asterisks that are not marks", "2**3, **** 2 ** 3**", "2**3, **** 2 ** 3**"],
    ["bold in code", "`a**b` `c**d`", "`a**b` `c**d`"],
    ["a name", String.raw`INC\-7: a\_b\*c`, "INC-7: a_b*c"],
    ["a backslash itself", String.raw`C:\\temp`, String.raw`C:\temp`],
    ["a backslash that escapes nothing", String.raw`C:\temp`, String.raw`C:\temp`],
    ["code", "run `grep '\\[x\\]'` on a\\_b", "run `grep '\\[x\\]'` on a_b"],
    ["a fence", "```\nsed 's/\\*//'\n```\n\\*", "```\nsed 's/\\*//'\n```\n*"],
    ["an escaped backtick", "\\`a\\_b` c\\_d", "`a_b` c_d"],
    ["an unclosed backtick", "`a\\_b", "`a_b"],
  ])("%s", (_, markdown, text) => {
    expect(plain(markdown)).toBe(text);
  });
});
