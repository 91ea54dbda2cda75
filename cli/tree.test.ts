import { expect, test } from "bun:test";
import { join } from "node:path";
import { isGroup, type Leaf, summaries } from "./command_tree.ts";
import { root } from "./tree.ts";

/** Every command with its path. A group with two names is counted under the first. */
function leaves(node: typeof root, path: string[] = []): [string, Leaf][] {
  const children = Object.entries(node.commands);
  const first = children.filter(([, child], at) => children.findIndex(([, other]) => other === child) === at);
  return first.flatMap(([name, child]): [string, Leaf][] =>
    isGroup(child) ? leaves(child, [...path, name]) : [[[...path, name].join("/"), child]],
  );
}

/** The file that a leaf imports, in cli/commands. */
const fileOf = (load: Leaf) => /commands\/([^"]+)"/.exec(load.toString())![1]!;

test("cli/tree.ts has every file of cli/commands, and no others", async () => {
  const files = [...new Bun.Glob("**/*.ts").scanSync(join(import.meta.dir, "commands"))].filter(
    (file) => !file.endsWith(".test.ts"),
  );
  const commands = new Set(leaves(root).map(([, load]) => fileOf(load)));
  expect(files.filter((file) => !commands.has(file))).toEqual([]);
  expect([...commands].filter((file) => !files.includes(file))).toEqual([]);
});

test("each entry of the table imports the file of its own path", async () => {
  for (const [path, load] of leaves(root)) {
    // Four commands of a few lines share a file.
    const shared = /^access\/(approve|deny|cancel|review)$/.test(path);
    expect(fileOf(load)).toBe(shared ? "access/decisions.ts" : `${path}.ts`);
    const { default: command } = await load();
    expect(command.run).toBeFunction();
    expect(command.args).toBeObject();
  }
});

test("every command and group has a summary without a full stop", async () => {
  const groups = (node: typeof root): (typeof root)[] => [
    node,
    ...Object.values(node.commands).filter(isGroup).flatMap(groups),
  ];
  for (const group of groups(root)) {
    for (const [, summary] of await summaries(group)) expect(summary).toMatch(/^[A-Z].*[^.]$/);
  }
});
