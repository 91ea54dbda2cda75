import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutation } from "./mutations.ts";

const wanted = { core: 100, server: 50, drizzle: 50 };
const mostOfOneFile = 3;

interface Edit {
  from: number;
  to: number;
  replace: string;
}

/** Chooses 200 mutations by the hash of their text, so that the same sources give the same ones. */
export function generateMutations(sources: string[], root: string): Mutation[] {
  return Object.entries(wanted).flatMap(([layer, count]) => {
    const files = sources.filter(
      (file) => file.startsWith(`${layer}/`) && !/\.test\.ts$|\/(revisions|schema)\//.test(file),
    );
    const all = files.flatMap((file) => mutationsOf(file, readFileSync(join(root, file), "utf8")));
    const ofFile = new Map<string, number>();
    const sorted = all.sort((one, other) => hash(one.file + one.replace) - hash(other.file + other.replace));
    return sorted
      .filter(({ file }) => {
        ofFile.set(file, (ofFile.get(file) ?? 0) + 1);
        return ofFile.get(file)! <= mostOfOneFile;
      })
      .slice(0, count);
  });
}

function mutationsOf(file: string, text: string): Mutation[] {
  return editsOf(text).flatMap(({ from, to, replace }) => {
    // Whole lines, and as many before them as make the text unique.
    let start = text.lastIndexOf("\n", from - 1) + 1;
    const end = text.indexOf("\n", to);
    while (start > 0 && text.split(text.slice(start, end)).length > 2)
      start = text.lastIndexOf("\n", start - 2) + 1;
    const mutated = text.slice(0, from) + replace + text.slice(to);
    if (!loads(mutated)) return [];
    return [
      {
        file,
        find: text.slice(start, end),
        replace: text.slice(start, from) + replace + text.slice(to, end),
        chosen: false,
      },
    ];
  });
}

const transpiler = new Bun.Transpiler({ loader: "ts" });

function loads(text: string): boolean {
  try {
    transpiler.transformSync(text);
    return true;
  } catch {
    return false;
  }
}

/** It knows the layout that the formatter gives the code, not its grammar. */
function editsOf(text: string): Edit[] {
  const code = text.replace(/^\s*(\/\/|\/?\*).*$|^import [\s\S]*?;$/gm, (found) =>
    found.replace(/[^\n]/g, " "),
  );
  const edits: Edit[] = [];
  for (const { index } of code.matchAll(/\bif \(/g)) {
    const open = index + 3;
    const close = closing(code, open);
    edits.push({ from: open + 1, to: close, replace: `!(${text.slice(open + 1, close)})` });
    const guard = /^\s*(throw|return)\b[^;{}`]*;/.exec(code.slice(close + 1));
    if (guard) edits.push({ from: index, to: close + 1 + guard[0].length, replace: "" });
  }
  for (const { index } of code.matchAll(/(?<![.\w])and\(/g)) {
    const open = index + 3;
    const close = closing(code, open);
    const parts = argumentsOf(code, open, close);
    if (parts.length < 2) continue;
    const at = hash(text.slice(open, close)) % parts.length;
    edits.push({ from: parts[at]![0], to: parts[at]![1], replace: "undefined" });
  }
  const replaced: [RegExp, (found: string) => string][] = [
    [
      /(?<= (?:[<>]=?|[-+*]|===|=) |: )\d[\d_]*(?=[,;)\s])/g,
      (found) => String(Number(found.replaceAll("_", "")) + (hash(found) % 2 || -1)),
    ],
    [/(?<= )[<>](?= )/g, (found) => `${found}=`],
    [/(?<=\s)[<>]=(?= )/g, (found) => found[0]!],
    [/\b[lg]t(?=\()/g, (found) => `${found}e`],
    [/\b[lg]te(?=\()/g, (found) => found.slice(0, 2)],
    [/\.for\("[^)]*\)/g, () => ""],
    [/ for (no key )?update( skip locked)?(?=[\s`])/g, () => ""],
    [/^ +and (?!.*=>)[^`\n]*$/gm, () => ""],
  ];
  for (const [pattern, replace] of replaced)
    for (const { index, 0: found } of code.matchAll(pattern))
      edits.push({ from: index, to: index + found.length, replace: replace(found) });
  return edits;
}

/** The index of the parenthesis that closes the one at `open`. */
function closing(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    const char = code[at]!;
    if (/["'`]/.test(char)) at = code.indexOf(char, at + 1);
    else if ("([{".includes(char)) depth++;
    else if (")]}".includes(char) && --depth === 0) return at;
  }
  return code.length;
}

/** The places of the arguments between two parentheses. */
function argumentsOf(code: string, open: number, close: number): [number, number][] {
  const parts: [number, number][] = [];
  let from = open + 1;
  for (let at = from; at < close; at++) {
    const char = code[at]!;
    if (/["'`]/.test(char)) at = code.indexOf(char, at + 1);
    else if ("([{".includes(char)) at = closing(code, at);
    else if (char === ",") {
      parts.push([from, at]);
      from = at + 1;
    }
  }
  if (code.slice(from, close).trim() !== "") parts.push([from, close]);
  return parts;
}

function hash(text: string): number {
  return Number(Bun.hash(text) % 1_000_000_007n);
}
