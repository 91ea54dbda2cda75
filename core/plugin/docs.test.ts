import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { builtinPlugins } from "../../plugins/builtin.ts";
import { optionalMethods, pluginMethods } from "./methods.ts";

// Checks docs/plugins.md where it can be compared with the code it describes.

const page = readFileSync(join(import.meta.dir, "../../docs/plugins.md"), "utf8");
const rows = page.split("\n").filter((line) => line.startsWith("| `"));

const variableOf = (slug: string, key: string) =>
  `SVC_PLUGIN_${`${slug}_${key.replaceAll(/[A-Z]/g, "_$&")}`.replaceAll("-", "_").toUpperCase()}`;

test("docs/plugins.md lists every included plugin under its type", () => {
  const listed = rows.flatMap((row) => {
    const [, type, slugs] = /^\| `([a-z_-]+)` \| [^|`]+ \| (`[^|]+`) \|$/.exec(row) ?? [];
    return slugs === undefined ? [] : slugs.split(", ").map((slug) => `${type} ${slug.slice(1, -1)}`);
  });
  expect(listed.sort()).toEqual(builtinPlugins.map(({ type, slug }) => `${type} ${slug}`).sort());
});

test("docs/plugins.md names every variable of an included plugin, or what its variables begin with", () => {
  const missing = builtinPlugins.flatMap(({ slug, configSchema: { properties = {} } }) =>
    Object.keys(properties)
      .map((key) => variableOf(slug, key))
      .filter((name) => !page.includes(`\`${name}\``) && !page.includes(`\`${variableOf(slug, "")}\``)),
  );
  expect(missing).toEqual([]);
});

test("the page lists every method of conversations and credentials, and marks the optional ones", () => {
  const described = rows
    .map((row) => /^\| `([a-z]+)`( \(optional\))? \|(?:[^|]+\|){4}$/.exec(row))
    .filter((match) => match !== null)
    .map(([, name, optional]) => [name, optional !== undefined]);
  const known = (["conversation", "credential"] as const).flatMap((type) =>
    Object.keys(pluginMethods[type]).map((name) => [name, optionalMethods.has(`${type}.${name}`)]),
  );
  expect(described.sort()).toEqual(known.sort());
});

test("the page marks the required variables of each plugin", () => {
  const marked = rows.flatMap((row) => {
    const [, name, note = ""] = /^\| `(SVC_PLUGIN_\w+)`(?: \(([^)]*)\))? \|/.exec(row) ?? [];
    return name === undefined ? [] : [[name, note.split(", ").includes("required")]];
  });
  expect(marked.length).toBeGreaterThan(8);
  const required = new Set(
    builtinPlugins.flatMap(({ slug, configSchema }) => {
      const { properties = {}, required = [] } = configSchema as {
        properties?: Record<string, { default?: unknown }>;
        required?: string[];
      };
      return required
        .filter((key) => properties[key]?.default === undefined)
        .map((key) => variableOf(slug, key));
    }),
  );
  expect(marked).toEqual(marked.map(([name]) => [name!, required.has(name as string)]));
});
