import { version } from "../package.json" with { type: "json" };
import type { CommandDefinition } from "./command.ts";
import { argumentRows, usageLine } from "./help.ts";
import { type Group, isGroup, type Leaf } from "./tree.ts";

const exitStatus: readonly [string, string][] = [
  ["0", "Success."],
  ["1", "Failure; a line on standard error says why."],
  ["2", "Invalid command line."],
  ["4", "Not signed in: run svc login."],
  ["130", "Interrupted with Ctrl-C."],
];

/** svc(1) in the macros of man(7), with the help of every command. */
export async function manualPage(tree: Group): Promise<string> {
  const commands = await Promise.all(
    leaves(tree).map(async ([path, leaf]) => section(path, (await leaf()).default)),
  );
  const lines = [
    `.TH SVC 1 "" "svc ${version}" "User Commands"`,
    ...[".SH NAME", `svc \\- ${text(tree.summary.toLowerCase())}`],
    ...[".SH SYNOPSIS", ".B svc", ".I COMMAND", "[options]"],
    ".SH DESCRIPTION",
    text("Self-hosted incident management: runs the server and the worker, and signs users in."),
    text("Data goes to standard output, messages go to standard error."),
    ".SH COMMANDS",
    ...commands.flat(),
    ".SH ENVIRONMENT",
    text(
      "The service is configured by environment variables, which may be in a file .env in the working directory:",
    ),
    ".B svc server config \\-\\-verbose",
    text("shows each with its value and source."),
    ".SH EXIT STATUS",
    ...exitStatus.flatMap(([code, meaning]) => [".TP", `.B ${code}`, text(meaning)]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Every command with its path. A group with two names is shown under the first. */
function leaves(group: Group, path: readonly string[] = []): [string[], Leaf][] {
  const children = Object.entries(group.commands);
  const once = children.filter(([, child], at) => children.findIndex(([, other]) => other === child) === at);
  return once.flatMap(([name, child]): [string[], Leaf][] =>
    isGroup(child) ? leaves(child, [...path, name]) : [[[...path, name], child]],
  );
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

/** Escapes what roff would take for a request. */
function text(plain: string): string {
  const safe = plain.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("`", "\\(ga");
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}
