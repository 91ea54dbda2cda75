import { describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { ConfigurationError } from "../../platform/errors.ts";
import { definePlugin } from "./define.ts";
import { createRegistry } from "./registry.ts";
import { settingsOf, variableName } from "./settings.ts";

const good = {
  title: "Good",
  slug: "good",
  version: "1.0.0",
  type: "term",
  author: "Ada",
  description: "Does good",
  configSchema: { type: "object", properties: {} },
  create: () => ({ list: () => [] }),
};

function faultsOf(...exported: unknown[]): readonly string[] {
  try {
    createRegistry(exported.map((one, at) => ({ origin: `package-${at + 1}`, exported: one })));
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as ConfigurationError).faults;
  }
}

test("plugins are found by slug and by type, in a stable order", () => {
  const registry = createRegistry([
    {
      origin: "one",
      exported: [
        { ...good, slug: "b" },
        { ...good, slug: "a" },
      ],
    },
    { origin: "two", exported: { ...good, slug: "c", type: "document" } },
  ]);
  expect(registry.all.map(({ slug }) => slug)).toEqual(["c", "a", "b"]);
  expect(registry.ofType("term").map(({ slug }) => slug)).toEqual(["a", "b"]);
  expect(registry.find("c")).toMatchObject({ type: "document", origin: "two" });
  expect(registry.find("d")).toBeUndefined();
  expect(() => Object.assign(registry.find("c")!, { slug: "x" })).toThrow();
});

describe("an invalid plugin is refused with the name of its package", () => {
  const cases: [string, unknown, string | RegExp][] = [
    ["undefined", undefined, "package-1: its default export is neither a plugin nor a list of plugins"],
    ["an empty list", [], "package-1: its default export is neither a plugin nor a list of plugins"],
    ["a function", () => good, "package-1: its default export is neither a plugin nor a list of plugins"],
    ["a list of strings", ["good"], "package-1: it contains something that is not a plugin"],
    ["no title", { ...good, title: undefined }, "package-1: plugin good: it has no title"],
    ["a blank author", { ...good, author: " " }, "package-1: plugin good: it has no author"],
    [
      "escapes in the title",
      { ...good, title: "\x1b[31mred" },
      "package-1: plugin good: its title is not one line of printable characters",
    ],
    [
      "a description of several lines",
      { ...good, description: "a\nb" },
      "package-1: plugin good: its description is not one line of printable characters",
    ],
    [
      "a long author",
      { ...good, author: "x".repeat(81) },
      "package-1: plugin good: its author has more than 80 characters",
    ],
    [
      "a slug with capitals",
      { ...good, slug: "Good" },
      /a plugin: its slug "Good" must consist of lower-case/,
    ],
    ["a slug like a path", { ...good, slug: "../good" }, /its slug "..\/good" must consist of lower-case/],
    ["a version with a single number", { ...good, version: "1" }, /its version "1" must look like 1.0.0/],
    ["a version that is a number", { ...good, version: 1.2 }, "package-1: plugin good: it has no version"],
    ["another type", { ...good, type: "toString" }, /its type "toString" must be one of document-resolver, /],
    ["no create", { ...good, create: {} }, "package-1: plugin good: create is not a function"],
    ["another end", { ...good, revocable: "later" }, /revocable is neither "now" nor "expiry"/],
    ["another key", { ...good, publicKey: "pgp" }, /publicKey is neither "ssh" nor "x509"/],
    ["no schema", { ...good, configSchema: null }, /configSchema is not an object schema/],
    [
      "a getter that throws",
      Object.defineProperty({ ...good }, "title", { get: () => JSON.parse("{") }),
      "package-1: it contains something that is not a plugin",
    ],
    [
      "a schema that throws",
      {
        ...good,
        configSchema: {
          toJSON: () => {
            throw new Error("hunter2");
          },
        },
      },
      /configSchema is not an object schema/,
    ],
  ];
  for (const [name, exported, fault] of cases) {
    test(name, () => {
      const faults = faultsOf(exported);
      expect(faults).toHaveLength(1);
      if (typeof fault === "string") expect(faults[0]).toBe(fault);
      else expect(faults[0]).toMatch(fault);
    });
  }
});

test("reports all faults of all packages at once", () => {
  expect(faultsOf([{ ...good, title: "", version: "x" }, good], 7, { ...good, slug: "UP" })).toEqual([
    "package-1: plugin good: it has no title",
    'package-1: plugin good: its version "x" must look like 1.0.0',
    "package-2: its default export is neither a plugin nor a list of plugins",
    'package-3: a plugin: its slug "UP" must consist of lower-case letters, digits and single hyphens',
  ]);
});

test("a slug is unique across types and packages", () => {
  expect(faultsOf(good, { ...good, type: "document" })).toEqual([
    "package-2: the slug good is taken by a plugin of package-1",
  ]);
});

test("a variable belongs to one plugin", () => {
  const schema = (key: string, more = {}) => ({
    type: "object",
    properties: { [key]: { type: "string", ...more } },
  });
  const a = { ...good, slug: "a", configSchema: schema("bC") };
  const ab = { ...good, slug: "a-b", configSchema: schema("c") };
  expect(faultsOf(a, ab)).toEqual([
    "package-2: plugin a-b: SVC_PLUGIN_A_B_C is a variable of plugin a already",
  ]);
  // The variable that selects plugins of another type.
  expect(faultsOf({ ...good, slug: "document", configSchema: schema("resolver") })).toEqual([
    "package-1: plugin document: SVC_PLUGIN_DOCUMENT_RESOLVER is a variable of svc itself already",
  ]);
  const both = {
    type: "object",
    properties: { k: { type: "string", secret: true }, kFile: { type: "string" } },
  };
  expect(faultsOf({ ...good, configSchema: both })).toEqual([
    "package-1: plugin good: SVC_PLUGIN_GOOD_K_FILE is a variable of plugin good already",
  ]);
});

test("values are read once: a plugin cannot change after it was checked", () => {
  let reads = 0;
  const shifty = {
    ...good,
    get slug() {
      return reads++ === 0 ? "good" : "webhook";
    },
  };
  const registry = createRegistry([{ origin: "shifty", exported: shifty }]);
  expect(registry.all.map(({ slug }) => slug)).toEqual(["good"]);
  expect(registry.find("webhook")).toBeUndefined();
});

describe("a configuration schema", () => {
  test("may be TypeBox or JSON Schema, with the same result", () => {
    const box = Type.Object({
      url: Type.String({ pattern: "^https:" }),
      apiKey: Type.Optional(Type.String({ secret: true, description: "Of the account" })),
      mode: Type.Union([Type.Literal("a"), Type.Literal("b")], { default: "a" }),
      size: Type.Integer({ minimum: 1, default: 5 }),
    });
    const json = JSON.parse(JSON.stringify(box));
    json.properties.mode = { enum: ["a", "b"], default: "a" };
    const made = settingsOf("x-y", box);
    expect(made.faults).toEqual([]);
    expect(settingsOf("x-y", json)).toEqual(made);
    expect(made.settings.map(({ name, secret, about }) => [name, secret, about])).toEqual([
      ["SVC_PLUGIN_X_Y_URL", false, ""],
      ["SVC_PLUGIN_X_Y_API_KEY", true, "Of the account"],
      ["SVC_PLUGIN_X_Y_MODE", false, ""],
      ["SVC_PLUGIN_X_Y_SIZE", false, ""],
    ]);
  });

  const wrong: [string, object][] = [
    ["a nested object", { a: { type: "object", properties: {} } }],
    ["a keyword that is not checked", { a: { type: "string", format: "uri" } }],
    ["an invalid pattern", { a: { type: "string", pattern: "(" } }],
    ["a limit that is not a number", { a: { type: "integer", minimum: "1" } }],
    ["a default of the wrong type", { a: { type: "integer", default: "many" } }],
    ["a key that is not a valid variable name", { "a.b": { type: "string" } }],
    ["a property that is not a schema", { a: true }],
  ];
  for (const [name, properties] of wrong) {
    test(`with ${name} is refused`, () => {
      const { faults } = settingsOf("x", { type: "object", properties });
      expect(faults).toHaveLength(1);
      expect(faults[0]).toStartWith("configSchema: ");
    });
  }

  test("names its variables in upper case", () => {
    expect(variableName("term-source", "bearerToken")).toBe("SVC_PLUGIN_TERM_SOURCE_BEARER_TOKEN");
  });
});

test("definePlugin types the configuration and the methods", () => {
  definePlugin({
    ...good,
    type: "term",
    configSchema: Type.Object({ size: Type.Integer() }),
    create: ({ size }) => ({ list: () => (size.toFixed() === "" ? [] : []) }),
  });
  definePlugin({
    ...good,
    type: "term",
    configSchema: Type.Object({ size: Type.Integer() }),
    // @ts-expect-error a term must have a text
    create: () => ({ list: () => [{ externalId: "1" }] }),
  });
});
