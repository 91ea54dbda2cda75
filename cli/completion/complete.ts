import type { ArgSchema, Args } from "gunshi/bone";
import { find, type Group, isGroup } from "../command_tree.ts";
import { kebab, metavar, optionNamed, positionalsOf } from "../help.ts";
import { type Candidate, commandsIn, type Places, valuesOf } from "./values.ts";

/** What may replace the last word. */
export interface Completion {
  candidates: Candidate[];
  /** The shell completes names of files or folders. */
  places?: Places;
}

/** A value that only the server knows. */
export interface Asked {
  /** The command, without the name of its first group. */
  path: readonly string[];
  /** The placeholder of the value in the help. */
  metavar: string;
  /** Whether the value may be one of several words. */
  multiple: boolean;
  /** The words before it, without options. */
  words: readonly string[];
  /** The values of the options before it. */
  options: ReadonlyMap<string, string>;
  /** The beginning of it that was typed. */
  last: string;
}

export type LookUp = (asked: Asked) => Promise<Candidate[]>;

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
 *
 * @param lookUp asks the server for what `svc incident` takes
 */
export async function complete(words: readonly string[], tree: Group, lookUp?: LookUp): Promise<Completion> {
  const last = words.at(-1) ?? "";
  const before = words.slice(words[0] === "--certificate" ? 1 : 0, -1);
  const { candidates, places } = await allFor(before, last, tree, lookUp);
  return { candidates: candidates.filter(({ word }) => word.startsWith(last)), places };
}

async function allFor(
  before: readonly string[],
  last: string,
  tree: Group,
  lookUp: LookUp | undefined,
): Promise<Completion> {
  let node: Group = tree;
  for (const [at, name] of before.entries()) {
    const child = find([name], node);
    if (child === undefined) return none;
    if (!isGroup(child)) {
      const { default: command } = await child();
      const path = before.slice(1, at + 1);
      const isOfIncident = find(before.slice(0, 1), tree) === find(["incident"], tree);
      const line = new CommandLine(command.args, path, isOfIncident ? lookUp : undefined);
      return await line.complete(before.slice(at + 1), last);
    }
    node = child;
  }
  if (last.startsWith("-")) return { candidates: node === tree ? rootOptions : helpOptions };
  return { candidates: await commandsIn(node) };
}

/** The words after a command. */
class CommandLine {
  readonly #options = new Map<string, string>();
  readonly #given = new Set<string>();
  readonly #words: string[] = [];

  constructor(
    readonly args: Args,
    readonly path: readonly string[],
    readonly lookUp: LookUp | undefined,
  ) {}

  async complete(before: readonly string[], last: string): Promise<Completion> {
    const { args } = this;
    let wanted: string | undefined;
    let onlyPositionals = false;
    for (const word of before) {
      if (wanted !== undefined) {
        this.#options.set(wanted, word);
        wanted = undefined;
      } else if (onlyPositionals || !word.startsWith("-") || word === "-") this.#words.push(word);
      else if (word === "--") onlyPositionals = true;
      else {
        const [option = "", ...value] = word.split("=");
        const name = optionNamed(option, args);
        if (name === undefined) continue;
        this.#given.add(name);
        if (option !== word) this.#options.set(name, value.join("="));
        else if (args[name]?.type !== "boolean") wanted = name;
      }
    }
    if (wanted !== undefined) return await this.#valuesOf(wanted, args[wanted]!, last);
    if (!onlyPositionals && last.startsWith("-")) return await this.#ofOption(last);
    const schemas = positionalsOf(args);
    const positional = schemas[this.#words.length] ?? schemas.find(([, { multiple }]) => multiple);
    return positional ? await this.#valuesOf(...positional, last) : none;
  }

  async #valuesOf(name: string, schema: ArgSchema, last: string): Promise<Completion> {
    const isPositional = schema.type === "positional";
    if (this.lookUp && !schema.choices) {
      const { path } = this;
      const multiple = isPositional && schema.multiple === true;
      const words = isPositional ? this.#words : [];
      const asked = { path, metavar: metavar(name, schema), multiple, words, options: this.#options, last };
      const candidates = await this.lookUp(asked);
      if (candidates.length > 0) return { candidates };
      // Here TASK is not a scheduled one.
      return { candidates, places: (await valuesOf(name, schema)).places };
    }
    // The values of the second word of several depend on the first.
    if (isPositional && schema.multiple && this.#words.length > 0) return none;
    return await valuesOf(name, schema);
  }

  /** `--na` is completed to an option, and `--name=va` to its value. */
  async #ofOption(last: string): Promise<Completion> {
    const { args } = this;
    const option = last.match(/^(--[^=]*)=/)?.[1];
    if (option === undefined) {
      const left = Object.entries(args).filter(
        ([name, { type, hidden, multiple }]) =>
          type !== "positional" && !hidden && (multiple || !this.#given.has(name)),
      );
      return { candidates: [...left.flatMap(([name, schema]) => spellings(name, schema)), ...helpOptions] };
    }
    const name = optionNamed(option, args);
    if (name === undefined || args[name]?.type === "boolean") return none;
    const { candidates, places } = await this.#valuesOf(name, args[name]!, last.slice(option.length + 1));
    return {
      candidates: candidates.map(({ word, about }) => ({ word: `${option}=${word}`, about })),
      places,
    };
  }
}

function spellings(name: string, schema: ArgSchema): Candidate[] {
  const { description = "", type, negatable } = schema;
  const about = type === "boolean" ? description : `${metavar(name, schema)}: ${description}`;
  const word = `--${kebab(name)}`;
  return negatable ? [{ word, about }, { word: `--no-${kebab(name)}` }] : [{ word, about }];
}
