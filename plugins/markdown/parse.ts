import type { Nodes, Paragraph } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTaskListItemFromMarkdown } from "mdast-util-gfm-task-list-item";
import { gfmTaskListItem } from "micromark-extension-gfm-task-list-item";
import { canonicalUserName } from "../../core/auth/user/name.ts";

/** A task as it stands in a text, without an identity. */
export interface WrittenTask {
  /** Its first paragraph as plain text, without what is said of it (who, until when) before and behind it. */
  description: string;
  status: "Open" | "Resolved";
  /** Addresses, each once, in the order in which they stand there. */
  assignees: string[];
  /** `2026-12-01` */
  resolveBy?: string;
}

/** Tasks of one text. Whoever has more wants a tracker, and one who sends thousands wants to do harm. */
export const mostTasks = 500;
/**
 * What is looked at of a text: so many characters, and so many lines, where each quote and item of a list counts as one
 * more. Parsing holds the process meanwhile, and takes the square of them.
 */
export const mostLines = 4000;
export const longestParsed = 200_000;
const longestDescription = 2000;
/**
 * Pairs of signs within a task, of all tasks together: parsing its words takes the square of the ASCII punctuation,
 * which is what Markdown's signs are made of. 500 tasks with 250 signs each stay below it.
 */
export const mostPairs = 40_000_000;
/** Columns that lists and quotes may take before a line begins: parsing takes the third power of the nesting. */
const deepest = 24;

// Blocks and words are parsed apart: of a long text of `*_*_`, parsing the words takes minutes, of a task's not.
const blocksAlone = {
  disable: {
    null: "attention autolink characterEscape characterReference codeText hardBreakEscape htmlText labelEnd labelStartImage labelStartLink setextUnderline".split(
      " ",
    ),
  },
};
const wordsAlone = {
  disable: {
    null: "blockQuote codeFenced codeIndented definition headingAtx htmlFlow list setextUnderline thematicBreak".split(
      " ",
    ),
  },
};

/** Where a line begins: the space, quotes and items of lists before its words. */
const beginning = /^(?:[ \t]|>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))*/;

/**
 * The tasks of a Markdown text, from top to bottom: items of lists that begin with `[ ]` or `[x]`, at any depth. What
 * stands in code is none.
 *
 * `@alice` (an address with `domain`) and `@alice@example.com` are given the task, `(due 2026-12-01)` says until when. What
 * is no user name or no day stays a part of the description.
 */
export function parseTasks(text: string, domain: string | undefined): WrittenTask[] {
  const looked = withinLimits(text);
  if (!/\[[ \txX]\]/.test(looked)) return [];
  const tree = fromMarkdown(looked, {
    extensions: [gfmTaskListItem(), blocksAlone],
    mdastExtensions: [gfmTaskListItemFromMarkdown()],
  });
  const tasks: WrittenTask[] = [];
  let pairs = 0;
  const walk = (node: Nodes) => {
    if (tasks.length >= mostTasks) return;
    if (node.type === "listItem" && typeof node.checked === "boolean") {
      const paragraph = node.children.find((child) => child.type === "paragraph");
      const raw = paragraph ? rawText(paragraph) : "";
      pairs += (raw.match(/[!-/:-@[-`{-~]/g)?.length ?? 0) ** 2;
      if (pairs > mostPairs) return;
      const task = taskOf(raw, node.checked, domain);
      if (task) tasks.push(task);
    }
    if ("children" in node) for (const child of node.children) walk(child);
  };
  walk(tree);
  return tasks;
}

/** As much of the text as is looked at, without the lines that are nested too deep. */
function withinLimits(text: string): string {
  const kept: string[] = [];
  let count = 0;
  for (const line of text.slice(0, longestParsed).split(/\r\n?|\n/)) {
    const [begins = ""] = beginning.exec(line) ?? [];
    // Of empty lines, parsing takes the square as well; one says as much as many.
    if (begins.length > deepest || (line.trim() === "" && kept.at(-1) === "")) continue;
    count += 1 + (begins.match(/[^ \t]/g)?.length ?? 0);
    if (count > mostLines) break;
    kept.push(line.trim() === "" ? "" : line);
  }
  return kept.join("\n");
}

/** Nothing for a box without words. */
function taskOf(raw: string, checked: boolean, domain: string | undefined): WrittenTask | undefined {
  const { text, code } = plainText(raw);
  const marks: { start: number; end: number }[] = [];
  const assignees = new Set<string>();
  let resolveBy: string | undefined;
  for (const match of text.matchAll(/(?<![^\s(,])@([^\s,;()]+)|\(due:? +(\d{4}-\d\d-\d\d)\)/gu)) {
    const place = { start: match.index, end: match.index + match[0].length };
    if (code.some(({ start, end }) => place.start < end && start < place.end)) continue;
    const [, name, day] = match;
    if (name !== undefined) {
      const said = addressOf(name, domain);
      if (said === undefined) continue;
      assignees.add(said.address);
      marks.push({ start: place.start, end: place.end - said.after });
    } else if (day !== undefined && isDay(day)) {
      resolveBy ??= day;
      marks.push(place);
    }
  }
  const description = withoutOuter(text, marks).trim();
  if (description === "") return undefined;
  return {
    ...{ description, status: checked ? "Resolved" : "Open", assignees: [...assignees].slice(0, 100) },
    ...(resolveBy === undefined ? {} : { resolveBy }),
  };
}

/** As much of a paragraph as is parsed, as it is written, without the signs of lists and quotes before its lines. */
function rawText({ children }: Paragraph): string {
  const text = children.map((child) => ("value" in child ? child.value : "\n")).join("");
  return text.slice(0, longestDescription).toWellFormed();
}

/** The words of a paragraph in one line, and where of them is code. */
function plainText(raw: string): { text: string; code: { start: number; end: number }[] } {
  let text = "";
  const code: { start: number; end: number }[] = [];
  const add = (words: string) => {
    // A NUL is U+FFFD by the time that it is parsed; the white space of all kinds is one kind here.
    text += words.replace(/\s/g, " ");
  };
  const walk = (node: Nodes) => {
    if (node.type === "text") add(node.value);
    else if (node.type === "break") add(" ");
    else if (node.type === "image" || node.type === "imageReference") add(node.alt ?? "");
    else if (node.type === "inlineCode") {
      const start = text.length;
      add(node.value);
      code.push({ start, end: text.length });
    } else if ("children" in node) for (const child of node.children) walk(child);
  };
  walk(fromMarkdown(raw, { extensions: [wordsAlone] }));
  return { text, code };
}

/** Whom `@name` means, and how many characters behind the name are the sentence's. */
function addressOf(name: string, domain: string | undefined): { address: string; after: number } | undefined {
  const bare = name.replace(/[.:!?]+$/, "");
  try {
    return { address: canonicalUserName(bare, domain), after: name.length - bare.length };
  } catch {
    return undefined; // no user name, or no domain to complete it
  }
}

function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** The text without the marks that it begins and ends with. One in the middle of a sentence is a part of it. */
function withoutOuter(text: string, marks: readonly { start: number; end: number }[]): string {
  let start = 0;
  let end = text.length;
  const skip = (from: number, to: number) => /^[\s,.:;]*$/.test(text.slice(from, to));
  for (const mark of marks) {
    if (skip(start, mark.start)) start = mark.end;
    else break;
  }
  for (const mark of marks.toReversed()) {
    if (mark.start >= start && skip(mark.end, end)) end = mark.start;
    else break;
  }
  return text
    .slice(start, end)
    .replace(/ +/g, " ")
    .replace(/^[ ,:;]+|[ ,;]+$/g, "");
}
