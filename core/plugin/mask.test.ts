import { describe, expect, test } from "bun:test";
import { effort } from "../../tests/support/database/effort.ts";
import { masked } from "./mask.ts";

describe("a very long text", () => {
  test("only its beginning is read", () => {
    const [short, endless] = [1, 400].map((times) => "\0 x".repeat(20_000 * times)) as [string, string];
    const once = () => masked(short);
    expect(effort(() => masked(endless))).toBeLessThan(20 * effort(() => Array.from({ length: 5 }, once)));
    expect(masked(endless)).toBe(`${"\uFFFD x".repeat(100)}…`);
  });

  test("no part of a secret is shown where the text is cut", () => {
    for (let before = 9980; before <= 10_010; before += 1) {
      const line = masked(`${" ".repeat(before)}hunter2, p@ss/word${" ".repeat(100)}`, [
        "hunter2",
        "p@ss/word",
      ]);
      expect(line.replaceAll("***", "")).not.toMatch(/hu|un|nt|p@|ss/);
    }
  });
});
