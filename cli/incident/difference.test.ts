import { describe, expect, test } from "bun:test";
import { difference } from "./difference.ts";

const lines = (count: number, text = "Line") => Array.from({ length: count }, (_, at) => `${text} ${at}`);

describe("a difference", () => {
  test("of texts of one line shows both", async () => {
    expect(await difference("Theirs\n", "Mine")).toEqual(["  Theirs: Theirs", "  Yours:  Mine"]);
  });

  test("of long lines begins shortly before the place where they differ", async () => {
    const start = "word ".repeat(1000);
    const cut = start.slice(-30);
    expect(await difference(`${start}theirs`, `${start}mine ${start}`)).toEqual([
      `  Theirs: …${cut}theirs`,
      `  Yours:  …${`${cut}mine ${start}`.slice(0, 160)}…`,
    ]);
    expect(await difference(`First\n${start}theirs`, `First\n${start}mine`)).toEqual([
      "Theirs (-) and yours (+):",
      "@@ line 1",
      " First",
      `-…${cut}theirs`,
      `+…${cut}mine`,
    ]);
  });

  test("shows both sides, however many lines one of them has", async () => {
    const shown = await difference(lines(1500, "Theirs").join("\n"), lines(1500, "Mine").join("\n"));
    expect(shown).toHaveLength(24);
    expect(shown.slice(10, 14)).toEqual(["-Theirs 8", "-Theirs 9", "-… 1490 more lines", "+Mine 0"]);
    expect(shown.at(-1)).toBe("+… 1490 more lines");
  });

  test("is bounded, however often the texts differ", async () => {
    const all = lines(1500);
    const mine = all.map((line, at) => (at % 10 === 0 ? `${line} mine` : line));
    const shown = await difference(all.join("\n"), mine.join("\n"));
    expect(shown.length).toBeLessThan(30);
    expect(shown.at(-1)).toBe("… 294 more lines differ");
    const around = (text: string) => ["Same", ...lines(9000, text), "Same"].join("\n");
    const other = await difference(around("Theirs"), around("Mine"));
    const added = await difference("Same", `Same\n${lines(9000, "Mine").join("\n")}`);
    expect([added.length, ...added.slice(1, 3)]).toEqual([13, "@@ line 2", "+Mine 0"]);
    expect([other.length, other[1], other.at(-1)]).toEqual([24, "@@ line 2", "+… 8990 more lines"]);
  });

  test("has nothing that a terminal would obey", async () => {
    const shown = await difference("a\n\x1b[2J", "a\nb\u202e");
    expect(shown.slice(2)).toEqual([" a", "-\ufffd[2J", "+b\ufffd"]);
  });
});
