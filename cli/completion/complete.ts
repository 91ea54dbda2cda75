import type { ArgSchema, Args } from "gunshi/bone";
import { kebab, metavar } from "../help.ts";
import { find, type Group, isGroup, summaries } from "../tree.ts";
import { type Candidate, type Places, valuesOf } from "./values.ts";

/** What may replace the last word. */
export interface Completion {
  candidates: Candidate[];
  /** The shell completes names of files or folders. */
  places?: Places;
}

const none: Completion = { candidates: [] };
const helpOptions: Candidate[] = [{ word: "--help", about: "Show this help" }];
const rootOptions: Candidate[] = [
  ...helpOptions,
  { word: "--version", about: "Show the version" },
  { word: "--certificate", about: "Authenticate with the client certificate" },
];

/**
 * Completes the last of `words`, which are those after `svc` up to the cursor; the last may be empty or incomplete.
 * Offers nothing if the words before it are not a valid command line.
 */
export async function complete(words: readonly string[], tree: Group): Promise<Completion> {
  const last = words.at(-1) ?? "";
  const all = words.slice(0, -1);
  const { candidates, places } = await allFor(all[0] === "--certificate" ? all.slice(1) : all, last, tree);
  return { candidates: candidates.filter(({ word }) => word.startsWith(last)), places };
}

async function allFor(before: readonly string[], last: string, tree: Group): Promise<Completion> {
  let node: Group = tree;
  for (const [at, name] of before.entries()) {
    const child = find([name], node);
    if (child === undefined) return none;
    if (!isGroup(child)) {
      const { default: command } = await child();
      return await ofCommand(command.args, before.slice(at + 1), last);
    }
    node = child;
  }
  if (last.startsWith("-")) return { candidates: node === tree ? rootOptions : helpOptions };
  return { candidates: (await summaries(node)).map(([word, about]) => ({ word, about })) };
}

async function ofCommand(args: Args, before: readonly string[], last: string): Promise<Completion> {
  const given = new Set<string>();
  let positionals = 0;
  let wanted: string | undefined;
  let onlyPositionals = false;
  for (const word of before) {
    if (wanted !== undefined) wanted = undefined;
    else if (onlyPositionals || !word.startsWith("-") || word === "-") positionals += 1;
    else if (word === "--") onlyPositionals = true;
    else {
      const [option = ""] = word.split("=");
      const name = named(option, args);
      if (name === undefined) continue;
      given.add(name);
      if (args[name]?.type !== "boolean" && option === word) wanted = name;
    }
  }
  if (wanted !== undefined) return await valuesOf(wanted, args[wanted]!);
  if (!onlyPositionals && last.startsWith("-")) return await ofOption(args, given, last);
  const schemas = Object.entries(args).filter(([, { type }]) => type === "positional");
  const positional = schemas[positionals] ?? schemas.find(([, { multiple }]) => multiple);
  // The values of the second word of several depend on the first.
  if (positional?.[1].multiple && positionals > 0) return none;
  return positional ? await valuesOf(...positional) : none;
}

/** `--na` is completed to an option, and `--name=va` to its value. */
async function ofOption(args: Args, given: ReadonlySet<string>, last: string): Promise<Completion> {
  const option = last.match(/^(--[^=]*)=/)?.[1];
  if (option === undefined) {
    const left = Object.entries(args).filter(
      ([name, { type, hidden, multiple }]) =>
        type !== "positional" && !hidden && (multiple || !given.has(name)),
    );
    return { candidates: [...left.flatMap(([name, schema]) => spellings(name, schema)), ...helpOptions] };
  }
  const name = named(option, args);
  if (name === undefined || args[name]?.type === "boolean") return none;
  const { candidates, places } = await valuesOf(name, args[name]!);
  return { candidates: candidates.map(({ word, about }) => ({ word: `${option}=${word}`, about })), places };
}

function named(option: string, args: Args): string | undefined {
  return Object.keys(args).find(
    (name) =>
      args[name]?.type !== "positional" &&
      [`--${kebab(name)}`, `--no-${kebab(name)}`, `-${args[name]?.short}`].includes(option),
  );
}

function spellings(name: string, schema: ArgSchema): Candidate[] {
  const { description = "", type, negatable } = schema;
  const about = type === "boolean" ? description : `${metavar(name, schema)}: ${description}`;
  const word = `--${kebab(name)}`;
  return negatable ? [{ word, about }, { word: `--no-${kebab(name)}` }] : [{ word, about }];
}
