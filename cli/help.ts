import type { ArgSchema, Args } from "gunshi/bone";
import type { CommandDefinition } from "./command.ts";
import { type Group, summaries } from "./command_tree.ts";

const noteWidth = 80;
const HELP_OPTION: [string, string] = ["-h, --help", "Show this help"];

/** `svc login [USER] [options]`. */
export function usageLine(
  path: readonly string[],
  command?: Pick<CommandDefinition, "args" | "rest">,
): string {
  const words = ["svc", ...path];
  if (command === undefined) return [...words, "COMMAND"].join(" ");
  const { args, rest } = command;
  for (const [name, schema] of positionalsOf(args)) {
    const placeholder = `${metavar(name, schema)}${repeats(name, schema) ? "..." : ""}`;
    words.push(isRequired(schema) ? placeholder : `[${placeholder}]`);
  }
  return [...words, "[options]", ...(rest === undefined ? [] : ["--", rest])].join(" ");
}

/** The help of a command. */
export function commandHelp(path: readonly string[], command: CommandDefinition): string {
  const { positionals, options } = argumentRows(command);
  return sections(
    command.summary,
    `Usage: ${usageLine(path, command)}`,
    table("Arguments", positionals),
    table("Options", [...options, HELP_OPTION]),
    list("Examples", command.examples ?? []),
    ...(command.notes ?? []).map((note) => Bun.wrapAnsi(note, noteWidth)),
  );
}

/** Each argument that is not hidden: how it is typed, and what it is. */
export function argumentRows({
  args,
}: CommandDefinition): Record<"positionals" | "options", [string, string][]> {
  return {
    positionals: positionalsOf(args).map(([name, schema]) => [metavar(name, schema), describe(schema)]),
    options: Object.entries(args)
      .filter(([, { type, hidden }]) => type !== "positional" && !hidden)
      .map(([name, schema]) => [optionName(name, schema), describe(schema)]),
  };
}

export function positionalsOf(args: Args): [string, ArgSchema][] {
  return Object.entries(args).filter(([, { type }]) => type === "positional");
}

/** The name of the option that is spelled `--name`, `--no-name` or `-n`. */
export function optionNamed(spelling: string, args: Args): string | undefined {
  return Object.keys(args).find(
    (name) =>
      args[name]?.type !== "positional" &&
      [`--${kebab(name)}`, `--no-${kebab(name)}`, `-${args[name]?.short}`].includes(spelling),
  );
}

/** The help of a group, or of `svc` itself when `path` is empty. */
export async function groupHelp(path: readonly string[], group: Group): Promise<string> {
  const options: [string, string][] = [HELP_OPTION];
  if (path.length === 0)
    options.push(
      ["--certificate", "Before a command: authenticate with the certificate of svc login --certificate"],
      ["-V, --version", "Show the version"],
    );
  return sections(
    group.summary,
    `Usage: ${usageLine(path)}`,
    table(
      "Commands",
      (await summaries(group)).map(([names, summary]) => [names.join(", "), summary]),
    ),
    table("Options", options),
    `Run \`${["svc", ...path].join(" ")} COMMAND --help\` for the help of a command.`,
  );
}

export function metavar(name: string, schema: ArgSchema): string {
  return schema.metavar ?? kebab(name).toUpperCase();
}

/** Whether each word has this placeholder. One that names several words, such as `TASK USER...`, shows what repeats. */
function repeats(name: string, schema: ArgSchema): boolean {
  return schema.multiple === true && !metavar(name, schema).includes(" ");
}

function isRequired(schema: ArgSchema): boolean {
  return schema.required ?? schema.default === undefined;
}

function optionName(name: string, schema: ArgSchema): string {
  const short = schema.short ? `-${schema.short}, ` : "";
  if (schema.type !== "boolean") return `${short}--${kebab(name)} ${metavar(name, schema)}`;
  return `${short}--${schema.negatable ? "[no-]" : ""}${kebab(name)}`;
}

function describe(schema: ArgSchema): string {
  const notes: string[] = [];
  if (schema.choices) notes.push(schema.choices.join(", "));
  if (schema.default !== undefined && schema.default !== false) notes.push(`default: ${schema.default}`);
  return `${schema.description ?? ""}${notes.length > 0 ? ` (${notes.join("; ")})` : ""}`;
}

export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function table(title: string, rows: readonly [string, string][]): string {
  if (rows.length === 0) return "";
  const width = Math.max(...rows.map(([name]) => name.length));
  return list(
    title,
    rows.map(([name, text]) => `${name.padEnd(width)}   ${text}`),
  );
}

function list(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : [`${title}:`, ...lines.map((line) => `  ${line}`.trimEnd())].join("\n");
}

function sections(...parts: readonly string[]): string {
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}
