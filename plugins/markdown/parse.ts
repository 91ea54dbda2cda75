import type { Nodes, Paragraph } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTaskListItemFromMarkdown } from "mdast-util-gfm-task-list-item";
import { gfmTaskListItem } from "micromark-extension-gfm-task-list-item";
import { canonicalUserName } from "../../core/auth/user/name.ts";

/** A task as written in a text, without an id. */
export interface WrittenTask {
  /** Its first paragraph as plain text, without the marks (assignees, due day) before and after it. */
  description: string;
  status: "Open" | "Resolved";
  /** Addresses without duplicates, in the order of the text. */
  assignees: string[];
  /** `2026-12-01` */
  resolveBy?: string;
}

/** Tasks of one text. More than this belongs in a tracker; thousands are an attack. */
export const mostTasks = 500;
/**
 * The parsed part of a text: the number of characters, and of lines, where each quote and list item counts as one more.
 * Parsing blocks the process, and its time is quadratic in them.
 */
export const mostLines = 4000;
export const longestParsed = 200_000;
const longestDescription = 2000;
/**
 * Pairs of punctuation characters within a task, summed over all tasks: parsing its inline Markdown is quadratic in the
 * ASCII punctuation. 500 tasks with 250 such characters each stay below it.
 */
export const mostPairs = 40_000_000;
/** Columns that lists and quotes may take before a line's text: parsing time is cubic in the nesting. */
const deepest = 24;

// Blocks and inline Markdown are parsed separately: inline parsing of a long text of `*_*_` would take minutes.
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

/** The prefix of a line: the white space, quotes and list markers before its text. */
const beginning = /^(?:[ \t]|>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))*/;

const box = /\[[ \txX]\]/;

/** The beginning of a line of HTML, or of a code fence. These go on after a heading. */
const html = /^[ \t>*+\-\d.)]*</m;
const fence = /^[ \t>*+\-\d.)]*(?:```|~~~)/m;

/** The tasks of a text, and whether it may have more of them beyond the limits. */
export interface Parsed {
  tasks: WrittenTask[];
  isCut: boolean;
}

/**
 * Returns the tasks of a Markdown text, from top to bottom: list items that begin with `[ ]` or `[x]`, at any depth, but
 * not in code.
 *
 * `@alice` (completed with `domain`) and `@alice@example.com` are the assignees, and `(due 2026-12-01)` is the due day. An
 * invalid user name or day stays part of the description.
 */
export function parseTasks(text: string, domain: string | undefined): Parsed {
  const { looked, ...limits } = withinLimits(withBoxes(text));
  let { isCut } = limits;
  if (!box.test(looked)) return { tasks: [], isCut };
  const tree = fromMarkdown(looked, {
    extensions: [gfmTaskListItem(), blocksAlone],
    mdastExtensions: [gfmTaskListItemFromMarkdown()],
  });
  const tasks: WrittenTask[] = [];
  let pairs = 0;
  const walk = (node: Nodes) => {
    if (node.type === "listItem" && typeof node.checked === "boolean") {
      if (tasks.length >= mostTasks) {
        isCut = true;
        return;
      }
      const paragraph = node.children.find((child) => child.type === "paragraph");
      const raw = paragraph ? rawText(paragraph) : "";
      pairs += (raw.match(/[!-/:-@[-`{-~]/g)?.length ?? 0) ** 2;
      if (pairs > mostPairs) {
        isCut = true;
        return;
      }
      const task = taskOf(raw, node.checked, domain);
      if (task) tasks.push(task);
    }
    if ("children" in node) for (const child of node.children) walk(child);
  };
  walk(tree);
  return { tasks, isCut };
}

/**
 * The text without the sections that have no checkbox, such as a long timeline before the tasks. A heading at the beginning of
 * a line ends every other block, so that they change nothing in the rest.
 */
function withBoxes(text: string): string {
  if (html.test(text)) return text;
  const parts = text.split(/^(?=#{1,6}[ \t])/m);
  return parts.filter((part) => box.test(part) || fence.test(part)).join("");
}

/** The part of the text within the limits, without lines that are nested too deeply. */
function withinLimits(text: string): { looked: string; isCut: boolean } {
  const kept: string[] = [];
  let count = 0;
  let isCut = text.length > longestParsed;
  for (const line of text.slice(0, longestParsed).split(/\r\n?|\n/)) {
    const [begins = ""] = beginning.exec(line) ?? [];
    // Parsing is quadratic in empty lines, too; one is equivalent to many.
    if (begins.length > deepest || (line.trim() === "" && kept.at(-1) === "")) continue;
    count += 1 + (begins.match(/[^ \t]/g)?.length ?? 0);
    if (count > mostLines) {
      isCut = true;
      break;
    }
    kept.push(line.trim() === "" ? "" : line);
  }
  return { looked: kept.join("\n"), isCut };
}

/** Returns undefined for a checkbox without text. */
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
      // "@alice's laptop" needs its first word.
      if (!said.possessive) marks.push({ start: place.start, end: place.end - said.after });
    } else if (day !== undefined && isDay(day)) {
      resolveBy ??= day;
      marks.push(place);
    }
  }
  const description = withoutOuter(text, marks).trim();
  if (description === "") return undefined;
  return {
    description,
    status: checked ? "Resolved" : "Open",
    assignees: [...assignees].slice(0, 100),
    ...(resolveBy === undefined ? {} : { resolveBy }),
  };
}

/** The part of a paragraph within the limits, as written, without the list and quote markers before its lines. */
function rawText({ children }: Paragraph): string {
  const text = children.map((child) => ("value" in child ? child.value : "\n")).join("");
  return text.slice(0, longestDescription).toWellFormed();
}

/** The text of a paragraph in one line, and the ranges of code in it. */
function plainText(raw: string): { text: string; code: { start: number; end: number }[] } {
  let text = "";
  const code: { start: number; end: number }[] = [];
  const add = (words: string) => {
    // The parser replaces NUL with U+FFFD; all kinds of white space count as one here.
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

/** The address that `@name` means, and the number of characters after the name that belong to the sentence. */
function addressOf(
  name: string,
  domain: string | undefined,
): { address: string; after: number; possessive: boolean } | undefined {
  const after = /(['\u2019]s?)?[.:!?]*$/.exec(name)!;
  const address = name.slice(0, after.index);
  const possessive = after[1] !== undefined;
  try {
    return { address: canonicalUserName(address, domain), after: after[0].length, possessive };
  } catch {
    return undefined; // not a user name, or no domain to complete it
  }
}

function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** The text without marks at its beginning and end. A mark in the middle of a sentence is part of it. */
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
