import type { Args } from "gunshi/bone";
import { find, type Group, isGroup } from "./command_tree.ts";
import { kebab, optionNamed } from "./help.ts";

/**
 * Stands for the hyphen of a negative number while gunshi parses it. Unicode reserves this character for use inside a
 * program, so nobody types it.
 */
const hyphen = "\uFDD0";
/** Stands for an empty text, which gunshi drops. */
const empty = "\uFDD1";

/**
 * The words of a command line (without `--` and what follows it) as gunshi reads them correctly. It reads `-1` as an
 * option, although no option is a number, and it knows neither `-L3` nor a value that begins with a hyphen. So a value
 * becomes part of its option, and a number that is a word of its own gets another hyphen until `asTyped`.
 */
export async function forParser(words: readonly string[], tree: Group): Promise<string[]> {
  const args = await argsOf(words, tree);
  const expanded = words.flatMap((word) => withoutAttached(word, args));
  const result: string[] = [];
  for (let at = 0; at < expanded.length; at++) {
    const word = expanded[at]!;
    const name = optionNamed(word, args);
    const emptied = word.endsWith("=") ? optionNamed(word.slice(0, -1), args) : undefined;
    if (isText(args, emptied)) result.push(`${word}${empty}`);
    else if (name === undefined || args[name]?.type === "boolean") result.push(withMark(word));
    else if (expanded[at + 1] === "" && isText(args, name)) {
      result.push(`--${kebab(name)}=${empty}`);
      at += 1;
    } else if (isValue(expanded[at + 1])) result.push(`--${kebab(name)}=${expanded[++at]}`);
    else result.push(`--${kebab(name)}=`);
  }
  return result;
}

/** A text, or a value with texts in it, with the hyphens that were typed. */
export function asTyped<T>(value: T): T {
  if (typeof value === "string") return value.replaceAll(hyphen, "-").replaceAll(empty, "") as T;
  return Array.isArray(value) ? (value.map(asTyped) as T) : value;
}

/** The arguments of the command that the words name. */
async function argsOf(words: readonly string[], tree: Group): Promise<Args> {
  let group = tree;
  for (const word of words.filter((word) => !word.startsWith("-"))) {
    const node = find([word], group);
    if (node === undefined) break;
    if (!isGroup(node)) return (await node()).default.args;
    group = node;
  }
  return {};
}

/** `-L3` and `-L=3` as `--limit=3`, after options without a value: `-eFnote.md` as `-e --file=note.md`. */
function withoutAttached(word: string, args: Args): string[] {
  if (!/^-[^-]./.test(word)) return [word];
  for (let at = 1; at < word.length; at++) {
    const name = optionNamed(`-${word[at]}`, args);
    if (name === undefined) break;
    // The frame rejects the value of a flag.
    if (args[name]?.type === "boolean" && word[at + 1] !== "=") continue;
    const before = at > 1 ? [word.slice(0, at)] : [];
    const value = word.slice(at + 1);
    return [...before, value === "" ? `-${word[at]}` : `--${kebab(name)}=${value.replace(/^=/, "")}`];
  }
  return [word];
}

/** A text of an incident may be empty. `--server ""` would mean the default server. */
function isText(args: Args, name: string | undefined): boolean {
  return name !== undefined && (args[name] as { mayBeEmpty?: boolean } | undefined)?.mayBeEmpty === true;
}

function isValue(word: string | undefined): boolean {
  return word !== undefined && (!/^-./.test(word) || isNumber(word));
}

/** A number, or a range of revisions that begins with one. */
function isNumber(word: string): boolean {
  return /^-\d+(:\S*)?$/.test(word);
}

function withMark(word: string): string {
  return isNumber(word) ? word.replace("-", hyphen) : word;
}
