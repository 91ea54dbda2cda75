import type { CommandDefinition } from "./command.ts";

/** A command: imports its file, which declares everything about it. */
export type Leaf = () => Promise<{ default: CommandDefinition }>;

/** A command that only holds other commands, e.g. `svc database`. */
export interface Group {
  summary: string;
  commands: Readonly<Record<string, Leaf | Group>>;
  /** Names that people know from other programs, with the command line to use instead. */
  instead?: Readonly<Record<string, string>>;
}

export function isGroup(node: Leaf | Group): node is Group {
  return typeof node !== "function";
}

/** The commands of a group, each with all its names; the first is the usual one. */
export function commandsOf({ commands }: Group): { names: string[]; node: Leaf | Group }[] {
  const byNode = Map.groupBy(Object.keys(commands), (name) => commands[name]!);
  return [...byNode].map(([node, names]) => ({ names, node }));
}

/** The names of each command of a group, and its summary. */
export async function summaries(group: Group): Promise<[string[], string][]> {
  return await Promise.all(
    commandsOf(group).map(async ({ names, node }): Promise<[string[], string]> => [
      names,
      isGroup(node) ? node.summary : (await node()).default.summary,
    ]),
  );
}

/** The node at a path such as `["database", "upgrade"]`; `[]` is `svc` itself. */
export function find(path: readonly string[], from: Group): Leaf | Group | undefined {
  let node: Leaf | Group | undefined = from;
  for (const name of path) {
    if (node === undefined || !isGroup(node) || !Object.hasOwn(node.commands, name)) return undefined;
    node = node.commands[name];
  }
  return node;
}
