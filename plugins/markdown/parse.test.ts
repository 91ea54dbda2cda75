import { beforeAll, describe, expect, test } from "bun:test";
import { effort } from "../../tests/support/database/effort.ts";
import { longestParsed, mostLines, mostPairs, mostTasks, parseTasks, type WrittenTask } from "./parse.ts";

const parse = (text: string, domain: string | undefined = "example.com") => parseTasks(text, domain).tasks;
const open = (description: string, more: Partial<WrittenTask> = {}): WrittenTask => ({
  description,
  status: "Open",
  assignees: [],
  ...more,
});

test("reads assignees, due day and status, at any depth", () => {
  const text = `
# Follow-up
- [ ] Rotate the keys @alice (due 2026-12-01)
  - [x] Ask the vendor @bob@vendor.example, @carol.

    More about it, @dave.
- no task, @alice
1. [X] @alice: Write it down
> * [ ] From a quote
`;
  expect(parse(text)).toEqual([
    open("Rotate the keys", { assignees: ["alice@example.com"], resolveBy: "2026-12-01" }),
    open("Ask the vendor", { status: "Resolved", assignees: ["bob@vendor.example", "carol@example.com"] }),
    open("Write it down", { status: "Resolved", assignees: ["alice@example.com"] }),
    open("From a quote"),
  ]);
});

describe("is not a task", () => {
  test.each([
    ["a fence", "```\n- [ ] a\n```"],
    ["indented code", "    - [ ] a"],
    ["a code fence in a quote", "> ~~~\n> - [ ] a\n> ~~~"],
    ["an HTML comment", "<!--\n- [ ] a\n\n- [ ] b\n-->"],
    ["a paragraph", "[ ] a"],
    ["a box without words", "- [ ] \n- [x]\n- [ ] @alice (due 2026-12-01)"],
    ["another mark", "- [-] a\n- [  ] b\n- [] c"],
    ["nothing", ""],
  ])("%s", (_, text) => expect(parse(text)).toEqual([]));
});

describe("stays part of the description:", () => {
  test.each([
    ["an invalid day", "a (due 2026-02-30)", "a (due 2026-02-30)"],
    ["another form of day", "a (due tomorrow)", "a (due tomorrow)"],
    ["an invalid user name", "a @b@c@d", "a @b@c@d"],
    ["a look-alike", "a @\u212Aevin", "a @\u212Aevin"],
    ["an address in the middle of a word", "mail a@b", "mail a@b"],
    ["a mark in code", "see `@alice`", "see @alice"],
  ])("%s", (_, text, description) => expect(parse(`- [ ] ${text}`)).toEqual([open(description)]));

  test("a name in the middle of the sentence, which is still an assignee", () => {
    expect(parse("- [ ] tell @alice about it")).toEqual([
      open("tell @alice about it", { assignees: ["alice@example.com"] }),
    ]);
  });

  test.each([
    "@alice's laptop is gone",
    "look at @alice’s.",
    "look at @alice@example.com's",
    "at @alice' desk",
  ])("a possessive, whose owner is an assignee: %s", (text) =>
    expect(parse(`- [ ] ${text}`)).toEqual([open(text, { assignees: ["alice@example.com"] })]),
  );

  test("a bare name without a domain to complete it", () => {
    expect(parseTasks("- [ ] a @alice\n- [ ] b @alice@x.org", undefined).tasks).toEqual([
      open("a @alice"),
      open("b", { assignees: ["alice@x.org"] }),
    ]);
  });
});

test("a description is plain text in one line", () => {
  const text =
    "- [ ] **Check** [the `disk`](https://x.example) ![plot](p) &amp; <b>more</b>\n  and\tso   on\\\n  #x";
  expect(parse(text)).toEqual([open("Check the disk plot & more and so on #x")]);
  expect(parse("- [ ] a\0b")).toEqual([open("a\uFFFDb")]);
  expect(parse(`- [ ] ${"x".repeat(5000)}`)[0]!.description).toHaveLength(2000);
  expect(parse("- [ ] a @alice @Alice @bob")[0]!.assignees).toEqual(["alice@example.com", "bob@example.com"]);
});

describe("hostile input is parsed quickly:", () => {
  const fill = (piece: string) => piece.repeat(Math.ceil(1_000_000 / piece.length));
  /** The time for an ordinary text of the maximum length. */
  let ordinary: number;
  beforeAll(() => {
    const paragraph = `- [ ] Write down how it went @alice (due 2026-12-01)\n${"What was said of it.\n".repeat(7)}`;
    ordinary = effort(() => parse(paragraph.repeat(mostLines / 8)));
  });
  test.each([
    ["lists in lists", Array.from({ length: 1000 }, (_, i) => `${"  ".repeat(i)}- [ ] a`).join("\n")],
    ["lists on a line", fill(`${"- ".repeat(1000)}[ ] a\n`)],
    ["lists on many lines", fill(`${"- ".repeat(11)}[ ] a\n`)],
    ["quotes", fill(`${"> ".repeat(1000)}- [ ] a\n`)],
    ["quotes and lazy lines", fill("> a\nb\n")],
    ["headings of two lines", fill("a\n=\n")],
    ["lists and rules", fill("- a\n---\n")],
    ["tabs", fill("-\ta\n\t- [ ] b\n")],
    ["empty lines", fill("\n")],
    ["other ends of lines", fill("- [ ] a\r")],
    ["emphasis", fill("*_")],
    ["emphasis of a task", `- [ ] ${fill("*_")}`],
    ["links of a task", `- [ ] ${fill("![a](")}`],
    ["boxes", fill("[x]")],
    ["definitions", fill("[a]: b\n")],
    ["people", `- [ ] ${fill("@a ")}`],
    ["NUL", fill("\0")],
    ["tasks", fill("- [ ] a @alice\n")],
  ])("%s", (_, hostile) => {
    // Without the limits, this takes hundreds of times as long.
    expect(effort(() => parse(`- [ ] first\n\n${hostile}`), 1) / ordinary).toBeLessThan(20);
  });
});

test("ignores everything beyond the limits", () => {
  expect(parse("- [ ] a\n".repeat(mostTasks + 1))).toHaveLength(mostTasks);
  expect(parse(`${"x\n".repeat(mostLines)}\n- [ ] a`)).toEqual([]);
  expect(parse(Array.from({ length: 20 }, (_, i) => `${"  ".repeat(i)}- [ ] a`).join("\n"))).toHaveLength(12);
  expect(parse(`${"x".repeat(longestParsed)}\n\n- [ ] a`)).toEqual([]);
});

describe("a text whose tasks were not all read is cut:", () => {
  test.each([
    ["characters", `- [ ] a\n\n${"x".repeat(longestParsed)}`],
    ["lines", `- [ ] a\n${"x\n".repeat(mostLines)}`],
    ["tasks", "- [ ] a\n".repeat(mostTasks + 1)],
    ["punctuation", `- [ ] ${"*a_".repeat(663)}\n`.repeat(100)],
  ])("%s", (_, text) => {
    expect(parseTasks(text, undefined).isCut).toBe(true);
  });

  test("not at the limits", () => {
    for (const text of ["- [ ] a\n".repeat(mostTasks), `- [ ] a${"x\n".repeat(mostLines - 3)}`])
      expect(parseTasks(text, undefined).isCut).toBe(false);
  });
});

describe("sections without a checkbox do not count", () => {
  const timeline = `## Timeline\n\n${"- [12:00](/app) What was \\[x\\] said\n".repeat(25_000)}`;

  test("whatever is before and after them", () => {
    const text = `- [ ] a\n# Summary\n- [ ] b\n${timeline}\n## Follow-up\n\n- [x] c\n\n${timeline}`;
    const all = { tasks: [open("a"), open("b"), open("c", { status: "Resolved" })], isCut: false };
    expect(parseTasks(text, undefined)).toEqual(all);
    expect(parseTasks(text.replaceAll("\n", "\r"), undefined)).toEqual(all);
  });

  test("unless code or HTML goes on in them", () => {
    for (const [begin, end] of [
      ["```", "```"],
      ["~~~", "~~~"],
      ["<!--", "-->"],
      ["<div>", ""],
    ])
      expect(parse(`# One\n${begin}\n# Two\n- [ ] a\n# Three\n${end}\n# Four\n- [ ] b`)).toEqual([open("b")]);
  });
});

test("parses only a share of tasks that consist of punctuation", () => {
  const piece = "*a_".repeat(663);
  const parsed = Math.floor(mostPairs / (2 * 663) ** 2);
  expect(parsed).toBeLessThan(25);
  expect(parse(`- [ ] ${piece}\n`.repeat(100))).toHaveLength(parsed);
  // Checkboxes without text are not tasks, but still use up the limit.
  expect(parse(`${`- [ ] ${"![]()".repeat(398)}\n`.repeat(12)}- [ ] b`)).toEqual([]);
});

test("parses the maximum number of tasks with more punctuation than people use", () => {
  expect(parse(`- [ ] ${"(a),".repeat(83)}\n`.repeat(mostTasks))).toHaveLength(mostTasks);
});
