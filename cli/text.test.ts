import { expect, test } from "bun:test";
import { jsonText, printable, shellWord } from "./text.ts";

test("what a terminal obeys, or nobody sees, becomes U+FFFD; joiners stay", () => {
  for (const one of [
    "\x00",
    "\t",
    "\x1b",
    "\x9b",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\u2028",
    "\u{e0041}",
  ])
    expect(printable(`a${one}b`)).toBe("a\ufffdb");
  for (const one of ["👩\u200d👩\u200d👧", "می\u200cخواهم", "क्\u200dष", "❤️", "支払い"])
    expect(printable(one)).toBe(one);
  expect([printable("ab👩", 3), printable("ab👩", 4), printable("ab👩c", 4)]).toEqual([
    "ab…",
    "ab👩",
    "ab👩…",
  ]);
});

test("JSON is the same value, without characters that a terminal obeys", () => {
  const value = { "a\x9b": "\x9b2J\x7f\u202egnp\u2066\u2028\x1b[31m", wide: "支払い", quote: '"\\u009b' };
  const text = jsonText(value);
  expect(JSON.parse(text)).toEqual(value);
  expect(text).not.toMatch(/[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/);
  expect(text).toContain("支払い");
  expect(jsonText({ a: 1 }, 2)).toBe('{\n  "a": 1\n}');
});

test("a word is one word for a shell", () => {
  for (const word of ["plain", "it's", "a b", "$(ls)", "`ls`", "", "-x", "*", "a\nb", "é"])
    expect(Bun.spawnSync(["sh", "-c", `printf %s ${shellWord(word)}`]).stdout.toString()).toBe(word);
});
