import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { markerLine, mergeTexts } from "./merge.ts";

const lines = (count: number, line: (at: number) => string = (at) => `Line ${at}`) =>
  Array.from({ length: count }, (_, at) => line(at));
const textOf = (all: readonly string[]) => `${all.join("\n")}\n`;

describe("a merge of two changed texts", () => {
  test("has the changes of both", async () => {
    const base = "# Notes\n\none\ntwo\nthree\n";
    const theirs = "# Notes of the call\n\none\ntwo\nthree\n";
    expect(await mergeTexts(base, theirs, "# Notes\n\none\ntwo\nthree\nfour\n")).toMatchObject({
      text: "# Notes of the call\n\none\ntwo\nthree\nfour\n",
      conflicts: 0,
    });
    expect((await mergeTexts(base, theirs, theirs)).text).toBe(theirs);
    expect((await mergeTexts(base, base, "mine")).text).toBe("mine");
    expect((await mergeTexts(base, "theirs", base)).text).toBe("theirs\n");
  });

  test("marks both versions where they changed the same or neighbouring lines", async () => {
    expect(await mergeTexts("a\nb\nc\n", "a\ntheirs\nc\n", "a\nmine\nc\n")).toEqual({
      preferred: "a\nmine\nc\n",
      text: "a\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> theirs\nc\n",
      conflicts: 1,
    });
    expect(await mergeTexts("a\nb\nc", "a\nb\ntheirs", "a\nmine\nc")).toMatchObject({ conflicts: 1 });
    // Both wrote a first text, with the same heading.
    expect((await mergeTexts("", "# Notes\ntheirs", "# Notes\nmine")).text).toBe(
      "# Notes\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> theirs\n",
    );
  });

  test("does not count line ends and the end of the text as changes", async () => {
    expect(await mergeTexts("a\r\nb\r\nc\r\n\r\n", "a\r\nb\r\nc\r\nd", "A\nb\nc\n")).toMatchObject({
      text: "A\nb\nc\nd\n",
      conflicts: 0,
    });
  });

  test("of 5,000 lines changed at both ends is clean", async () => {
    const base = lines(5000, (at) => (at % 2 ? "" : `Line ${at}`));
    const merged = await mergeTexts(textOf(base), textOf(["Theirs", ...base]), textOf([...base, "", "Mine"]));
    expect(merged).toMatchObject({ text: textOf(["Theirs", ...base, "", "Mine"]), conflicts: 0 });
  });

  test.each([
    ["different lines", lines(50_000), lines(50_000, (at) => `Theirs ${at}`), lines(50_000, (at) => `${at}`)],
    ["equal lines", lines(200_000, () => "x"), lines(100_000, () => "x"), lines(3000, () => "y")],
    [
      "lines in turn",
      lines(100_000, (at) => `${at % 2}`),
      lines(100_000, (at) => `${at % 3}`),
      lines(100_000, (at) => `${at % 5}`),
    ],
  ])("of many %s takes a bounded time, and loses nothing", async (_, base, theirs, yours) => {
    const { text, conflicts } = await mergeTexts(textOf(base), textOf(theirs), textOf(yours));
    expect(conflicts).toBeGreaterThan(0);
    expect(sidesOf(text)).toEqual({ yours: textOf(yours), theirs: textOf(theirs) });
  });

  test("has all of both texts, whatever they changed", async () => {
    const some = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(some, some, some, async (base, theirs, yours) => {
        const [o, a, b] = [base, theirs, yours].map((all) => all.join("\n")) as [string, string, string];
        const merged = await mergeTexts(o, a, b);
        const other = await mergeTexts(o, b, a);
        expect(other.conflicts).toBe(merged.conflicts);
        expect((await mergeTexts(o, o, b)).text).toBe(b);
        expect((await mergeTexts(o, a, o)).text).toBe(a);
        if (merged.conflicts === 0) expect(other.text).toBe(merged.text);
      }),
    );
  });
});

/** The two texts that a merge without clean changes was made of. */
function sidesOf(text: string): { yours: string; theirs: string } {
  const sides = { yours: [] as string[], theirs: [] as string[] };
  let within: "both" | "yours" | "theirs" = "both";
  for (const line of text.split("\n")) {
    if (line === "<<<<<<< yours") within = "yours";
    else if (line === "=======") within = "theirs";
    else if (line === ">>>>>>> theirs") within = "both";
    else {
      if (within !== "theirs") sides.yours.push(line);
      if (within !== "yours") sides.theirs.push(line);
    }
  }
  return { yours: sides.yours.join("\n"), theirs: sides.theirs.join("\n") };
}

test("a marker is found by its line", () => {
  expect(markerLine("a\n<<<<<<< yours\nb")).toBe(2);
  expect(markerLine("a\nb\n>>>>>>> theirs")).toBe(3);
  expect(markerLine("a\n=======\n<<<<<<< HEAD\n    <<<<<<< yours\n")).toBeUndefined();
});
