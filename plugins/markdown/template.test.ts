import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fromMarkdown } from "mdast-util-from-markdown";
import { parseTasks } from "./parse.ts";
import { fillTemplate } from "./template.ts";

const fill = (text: string, variables: Record<string, string> = {}) => fillTemplate(text, variables, 10_000);

test("replaces each known name in braces once, and keeps unknown ones", () => {
  const variables = { name: "INC-1", title: "Disk {{name}} full", toString: "x" };
  expect(fill("# {{name}}: {{ title }} {{nobody}} {name} {{}} {{constructor}}", variables)).toBe(
    "# INC-1: Disk {{name}} full {{nobody}} {name} {{}} {{constructor}}",
  );
});

test("keeps addresses usable as links", () => {
  const weblink = "https://svc.example.com:8443/incidents/7";
  expect(fill("{{weblink}} [it]({{weblink}})", { weblink })).toBe(`${weblink} [it](${weblink})`);
});

describe("values are plain text", () => {
  const hostile = [
    "- [ ] evil @eve",
    "x\n- [x] evil",
    "x\r- [ ] evil",
    "x\n\n1. [ ] evil",
    "[ ] evil",
    "[click](https://evil.example)",
    "![](https://evil.example)",
    "<https://evil.example>",
    "<script>alert(1)</script>",
    "`code`",
    "~~~\ncode",
    "# heading",
    "x\n===",
    "x\n---",
    "> quote",
    "[x]: https://evil.example",
    "https://evil.example/?q=1&amp;x",
    "\\[x](y)",
  ];
  const frames = [
    "{{title}}",
    "- {{title}}",
    "# {{title}}",
    "> {{title}}",
    "a {{title}} b",
    "- [ ] {{title}}",
  ];
  const plain = new Set(["root", "paragraph", "text", "list", "listItem", "heading", "blockquote"]);
  const shapeOf = (text: string) => {
    const seen: Record<string, number> = {};
    const walk = (node: { type: string; children?: unknown[] }) => {
      // A value may add lines, and therefore paragraphs, but nothing else.
      if (node.type !== "text" && node.type !== "paragraph") seen[node.type] = (seen[node.type] ?? 0) + 1;
      expect(plain).toContain(node.type);
      for (const child of node.children ?? []) walk(child as typeof node);
    };
    walk(fromMarkdown(text));
    return seen;
  };
  test.each(frames)("in %p", (frame) => {
    for (const title of hostile) {
      const filled = fill(frame, { title });
      expect([title, shapeOf(filled)]).toEqual([title, shapeOf(fill(frame, { title: "words" }))]);
      expect(parseTasks(filled, undefined).tasks).toHaveLength(frame.includes("[ ]") ? 1 : 0);
    }
  });

  test("whatever it is", () => {
    const piece = fc.constantFrom(..."-*+_`~#>[]()!<>&|\\= \n\r\t:/w.1xa{}");
    const title = fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(title, fc.constantFrom(...frames.slice(0, 5)), (title, frame) => {
        const filled = fill(frame, { title });
        expect(parseTasks(filled, undefined).tasks).toEqual([]);
        shapeOf(filled);
      }),
      { numRuns: 2000 },
    );
  });

  test("and Markdown shows them unchanged", () => {
    const title = "1. *Disk* <full> [x] & `y` #1 \\o/";
    const shown = fromMarkdown(fill("{{title}}", { title })).children[0] as { children: { value: string }[] };
    expect(shown.children.map(({ value }) => value).join("")).toBe(title);
  });
});

test("rejects a result that is too long before building it", () => {
  // Longer than the limit for texts.
  const text = "{{x}}".repeat(200_000);
  expect(() => fillTemplate(text, { x: "x".repeat(20_000) }, 1_000_000)).toThrow("longer than 1000000");
});
