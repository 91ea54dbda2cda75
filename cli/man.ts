import { version } from "../package.json" with { type: "json" };
import type { CommandDefinition } from "./command.ts";
import { argumentRows, usageLine } from "./help.ts";
import { type Group, isGroup, type Leaf } from "./tree.ts";

const exitStatus: readonly [string, string][] = [
  ["0", "It was done."],
  ["1", "It failed; one line on standard error says why."],
  ["2", "The command line is wrong."],
  ["4", "Nobody is signed in: svc login."],
  ["130", "Ctrl-C."],
];

/** svc(1), in the macros of man(7): the help of every command, in the order of the tree. */
export async function manualPage(tree: Group): Promise<string> {
  const commands = await Promise.all(leaves(tree).map(([path, leaf]) => section(path, leaf)));
  const lines = [
    `.TH SVC 1 "" "svc ${version}" "User Commands"`,
    ...[".SH NAME", `svc \\- ${text(tree.about.toLowerCase())}`],
    ...[".SH SYNOPSIS", ".B svc", ".I COMMAND", "[options]"],
    ".SH DESCRIPTION",
    text(
      "Self-hosted incident management: a server, a worker for a fixed schedule, and this program for both.",
    ),
    text("What a command was asked for goes to standard output, everything else to standard error."),
    ".SH COMMANDS",
    ...commands.flat(),
    ".SH ENVIRONMENT",
    text("The service is configured by variables, which may stand in a file .env of the working directory:"),
    ".B svc server config \\-\\-verbose",
    text("shows each with its value and where that is from."),
    ".SH EXIT STATUS",
    ...exitStatus.flatMap(([code, meaning]) => [".TP", `.B ${code}`, text(meaning)]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Every command with its path; a group under a second name is shown under its first. */
function leaves(group: Group, path: readonly string[] = []): [string[], Leaf][] {
  const children = Object.entries(group.commands);
  const once = children.filter(([, child], at) => children.findIndex(([, other]) => other === child) === at);
  return once.flatMap(([name, child]): [string[], Leaf][] =>
    isGroup(child) ? leaves(child, [...path, name]) : [[[...path, name], child]],
  );
}

async function section(path: readonly string[], leaf: Leaf): Promise<string[]> {
  const command = (await leaf.load()).default as CommandDefinition;
  const { positionals, options } = argumentRows(command);
  const rows = [...positionals, ...options].flatMap(([name, about]) => [
    ".TP",
    `.B ${text(name)}`,
    text(about),
  ]);
  const examples = (command.examples ?? []).flatMap((example) => [".EX", text(example), ".EE"]);
  return [
    `.SS ${text(usageLine(path, command.args))}`,
    text(`${leaf.about}.`),
    ...rows,
    ...(command.notes ?? []).flatMap((note) => [".PP", text(note)]),
    ...(examples.length > 0 ? [".PP", ...examples] : []),
  ];
}

/** As it stands: nothing of it is an order to roff. */
function text(plain: string): string {
  const safe = plain.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("`", "\\(ga");
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}
