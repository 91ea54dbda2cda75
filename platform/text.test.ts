import { describe, expect, test } from "bun:test";
import { parseName, parseProse, parseText, withFewMarks } from "./text.ts";

const refusal = (parse: () => string) => {
  try {
    return parse();
  } catch (error) {
    return (error as Error).message;
  }
};

describe("a name or text without visible characters counts as empty", () => {
  test.each([
    ["no characters", ""],
    ["space", " \u00a0\u3000"],
    ["lines", "\u2028\u2029\u0085"],
    ["joiners", "\u200b\u200c\u200d\u2060"],
    ["a byte order mark", "\ufeff"],
    ["a soft hyphen", "\u00ad"],
    ["fillers", "\u3164\u115f\u1160\uffa0"],
    ["directions", "\u202e\u200f"],
    ["variation selectors", "\ufe0f\u{e0100}"],
    ["a mixture", " \u200b \u3164\u00ad "],
  ])("%s", (_, text) => {
    for (const parse of [parseName, parseProse])
      expect(refusal(() => parse("title", text))).toBe("The field title is empty");
  });

  test.each(["a", "0", "-", "\u{1f600}", "\u2800", "\u0301", "\u05d0\u200f", "\u{10ffff}", "\ue000"])(
    "%p does not",
    (text) => {
      expect([parseName("title", text), parseProse("title", text)]).toEqual([text, text]);
    },
  );
});

describe("a name is one line", () => {
  test.each(["\n", "\r", "\v", "\u0085", "\u2028", "\u2029", "\u001b"])("without %p", (between) => {
    expect(refusal(() => parseName("title", `a${between}b`))).toBe(
      "The field title must be a single line of text",
    );
    expect(parseProse("title", `a${between}b`)).toBe(`a${between}b`);
  });

  test("may contain joiners", () => {
    for (const text of ["\u{1f468}\u200d\u{1f680}", "co\u00adoperate", "\u0646\u200c\u0647"])
      expect(parseName("title", text)).toBe(text);
  });

  test.each(["\u202a", "\u202d", "\u202e", "\u2066", "\u2068"])(
    "without the bidirectional control %p",
    (turn) => {
      expect(refusal(() => parseName("title", `a${turn}b`))).toBe(
        "The field title contains a character that changes the text direction",
      );
      expect(parseProse("title", `a${turn}b`)).toBe(`a${turn}b`);
      expect(parseName("title", "\u05e9\u05dc\u05d5\u05dd\u200f!")).toBe("\u05e9\u05dc\u05d5\u05dd\u200f!");
    },
  );
});

describe("30 combining marks in a row are enough", () => {
  const marks = (count: number) => "\u0301\u0316".repeat(count / 2);

  test.each([
    ["accents", marks(32)],
    ["accents and half-width marks", `${"\u0301\uff9e".repeat(15)}\uff9f`],
    ["enclosing and spacing marks", `${"\u20dd\u0903".repeat(15)}\u{1d165}`],
  ])("%s", (_, many) => {
    for (const text of [many, `a${many}b`, `a${marks(30)}b${many}`]) {
      expect(refusal(() => parseText("note", text, 1000))).toBe(
        "The field note has more than 30 accents on one letter",
      );
      expect(refusal(() => parseText("note", withFewMarks(text), 1000))).toBe(withFewMarks(text));
    }
  });

  test("as many on each letter are accepted", () => {
    const text = `a${marks(30)}`.repeat(3);
    expect([parseText("note", text, 1000), withFewMarks(text)]).toEqual([text, text]);
  });
});
