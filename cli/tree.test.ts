import { expect, test } from "bun:test";
import { join } from "node:path";
import { isGroup, type Leaf, root } from "./tree.ts";

/** Every command with its path; a group under a second name is counted under its first. */
function leaves(node: typeof root, path: string[] = []): [string, Leaf][] {
  const children = Object.entries(node.commands);
  const first = children.filter(([, child], at) => children.findIndex(([, other]) => other === child) === at);
  return first.flatMap(([name, child]): [string, Leaf][] =>
    isGroup(child) ? leaves(child, [...path, name]) : [[[...path, name].join("/"), child]],
  );
}

test("the folder tree is the command tree", async () => {
  const files = [...new Bun.Glob("**/*.ts").scanSync(join(import.meta.dir, "commands"))].filter(
    (file) => !file.endsWith(".test.ts"),
  );
  const commands = new Set(leaves(root).map(([path]) => `${path}.ts`));
  expect(files.filter((file) => !commands.has(file))).toEqual([]);
  expect([...commands].filter((file) => !files.includes(file))).toEqual([]);
});

test("each entry of the table imports the file of its own path", async () => {
  for (const [path, { load }] of leaves(root)) {
    expect(load.toString()).toContain(`${path}.ts`);
    const { default: command } = await load();
    expect(command.run).toBeFunction();
    expect(command.args).toBeObject();
  }
});

test("every command and group says what it is for, as a sentence without a full stop", () => {
  const abouts = (node: typeof root): string[] =>
    Object.values(node.commands).flatMap((child) => [child.about, ...(isGroup(child) ? abouts(child) : [])]);
  for (const about of abouts(root)) expect(about).toMatch(/^[A-Z].*[^.]$/);
});
