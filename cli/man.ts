import { version } from "../package.json" with { type: "json" };
import type { CommandDefinition } from "./command.ts";
import { commandsOf, type Group, isGroup, type Leaf } from "./command_tree.ts";
import { argumentRows, usageLine } from "./help.ts";

const exitStatus: readonly [string, string][] = [
  ["0", "Success."],
  ["1", "Failure; a line on standard error says why."],
  ["2", "Invalid command line."],
  ["4", "Not signed in: run svc login."],
  ["130", "Interrupted with Ctrl-C."],
];

/** The variables of the commands for users; `svc server config` lists those of the service. */
const variables: readonly [string, string][] = [
  ["SVC_SERVER", "The server, without --server."],
  ["SVC_TOKEN", "An access token, instead of the stored one."],
  ["SVC_INCIDENT", "The incident of svc incident, without ID."],
  ["VISUAL, EDITOR", "The editor; VISUAL is not used on a dumb terminal. Without either: vi."],
  ["NO_COLOR", "No colour, if it is not empty. With TERM=dumb, there are no escape sequences at all."],
  ["XDG_CONFIG_HOME, XDG_STATE_HOME", "The directories of the files below."],
  ["SVC_DEBUG", "With 1, an unexpected error shows where it happened."],
];

const files: readonly [string, string][] = [
  ["~/.config/svc/credentials.json", "The sign-ins, by server."],
  ["~/.config/svc/incident.json", "The incident of svc incident use."],
  ["~/.local/state/svc/drafts/", "Texts that could not be sent."],
];

/** svc(1) in the macros of man(7), with the help of every command. */
export async function manualPage(tree: Group): Promise<string> {
  const commands = await Promise.all(
    leaves(tree).map(async ([path, leaf]) => section(path, (await leaf()).default)),
  );
  const lines = [
    `.TH SVC 1 "" "svc ${version}" "User Commands"`,
    ".SH NAME",
    `svc \\- ${text(tree.summary.toLowerCase())}`,
    ".SH SYNOPSIS",
    ".B svc",
    ".I COMMAND",
    "[options]",
    ".SH DESCRIPTION",
    text("Self-hosted incident management: runs the server and the worker, and signs users in."),
    text("Data goes to standard output, messages go to standard error."),
    ".SH COMMANDS",
    ...commands.flat(),
    ".SH ALIASES",
    ...aliases(tree).flatMap(([alias, path]) => [".TP", `.B ${text(alias)}`, text(path)]),
    ".SH ENVIRONMENT",
    ...variables.flatMap(([name, meaning]) => [".TP", `.B ${text(name)}`, text(meaning)]),
    ".PP",
    text(
      "The service is configured by environment variables, which may be in a file .env in the working directory:",
    ),
    ".B svc server config \\-\\-verbose",
    text("shows each with its value and source."),
    ".SH FILES",
    ...files.flatMap(([name, meaning]) => [".TP", `.I ${text(name)}`, text(meaning)]),
    ".SH EXIT STATUS",
    ...exitStatus.flatMap(([code, meaning]) => [".TP", `.B ${code}`, text(meaning)]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Every command with its path. A group with two names is shown under the first. */
function leaves(group: Group, path: readonly string[] = []): [string[], Leaf][] {
  return commandsOf(group).flatMap(({ names: [name = ""], node }): [string[], Leaf][] =>
    isGroup(node) ? leaves(node, [...path, name]) : [[[...path, name], node]],
  );
}

/** The further names of commands and groups, each with its first name. */
function aliases(group: Group, path: readonly string[] = []): [string, string][] {
  const words = (last: string) => ["svc", ...path, last].join(" ");
  return commandsOf(group).flatMap(({ names: [name = "", ...more], node }): [string, string][] => [
    ...(isGroup(node) ? aliases(node, [...path, name]) : []),
    ...more.map((alias): [string, string] => [words(alias), words(name)]),
  ]);
}

function section(path: readonly string[], command: CommandDefinition): string[] {
  const { positionals, options } = argumentRows(command);
  const rows = [...positionals, ...options].flatMap(([name, description]) => [
    ".TP",
    `.B ${text(name)}`,
    text(description),
  ]);
  const examples = (command.examples ?? []).flatMap((example) => [".EX", text(example), ".EE"]);
  return [
    `.SS ${text(usageLine(path, command))}`,
    text(`${command.summary}.`),
    ...rows,
    ...(command.notes ?? []).flatMap((note) => [".PP", text(note)]),
    ...(examples.length > 0 ? [".PP", ...examples] : []),
  ];
}

/** Escapes text that roff would read as a request, or replace by typographic characters, which a shell does not accept. */
function text(plain: string): string {
  const safe = plain
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("`", "\\(ga")
    .replaceAll("'", "\\(aq")
    .replaceAll("^", "\\(ha")
    .replaceAll("~", "\\(ti");
  return safe.startsWith(".") ? `\\&${safe}` : safe;
}
