import { expect, test } from "bun:test";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import { noPlugins } from "../../tests/support/domain/plugins.ts";
import { readConfig } from "../config.ts";
import type { Context } from "../context.ts";
import { choosePlugins } from "./choose.ts";
import type { BuiltinDeps } from "./define.ts";
import { createRegistry } from "./registry.ts";
import { readSettings, settingsOf } from "./settings.ts";

const silent = () => {};
const deps: BuiltinDeps = {
  context: {} as Context,
  fetch: () => Promise.reject(new Error("no network in this test")),
  clock: { now: () => new Date(0) },
  log: { debug: silent, info: silent, warn: silent, error: silent },
};

const facts = { title: "T", version: "1.0.0", author: "Ada", description: "D" };
const configSchema = {
  type: "object",
  properties: {
    url: { type: "string", pattern: "^https://", description: "Where it is" },
    apiKey: { type: "string", secret: true },
    size: { type: "integer", minimum: 1, default: 5 },
  },
  required: ["url"],
};
const seen: unknown[] = [];
const registry = createRegistry([
  {
    origin: "terms",
    exported: [
      {
        ...facts,
        slug: "one",
        type: "term",
        configSchema,
        create: (config: unknown) => {
          seen.push(config);
          return { list: () => [] };
        },
      },
      {
        ...facts,
        slug: "two",
        type: "term",
        configSchema: { type: "object" },
        create: () => ({ list() {} }),
      },
    ],
  },
  {
    origin: "broken",
    exported: [
      { ...facts, slug: "empty", type: "document", configSchema: { type: "object" }, create: () => null },
      {
        ...facts,
        slug: "thrower",
        type: "conversation",
        configSchema: { type: "object", properties: { key: { type: "string", secret: true } } },
        create: ({ key }: { key: string }) => {
          throw Object.assign(new Error(key), { detail: `"${key}" is not good` });
        },
      },
      {
        ...facts,
        slug: "hanger",
        type: "participant",
        configSchema: { type: "object" },
        create: () => new Promise(() => {}),
      },
    ],
  },
]);

const choose = (environment: Record<string, string>) =>
  choosePlugins(registry, readConfig({ ...noPlugins, ...environment }), environment, deps);

async function faultsOf(environment: Record<string, string>): Promise<readonly string[]> {
  const error = await choose(environment).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(ConfigurationError);
  return (error as ConfigurationError).faults;
}

test("no plugin is selected by default", async () => {
  expect((await choose({})).ofType("term")).toEqual([]);
});

test("selected plugins keep their order, and each gets its configuration", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "svc-plugins-")), "key");
  await writeFile(file, "from-a-file\n");
  seen.length = 0;
  const plugins = await choose({
    SVC_PLUGIN_TERM: "two, one,two",
    SVC_PLUGIN_ONE_URL: "https://one.example",
    SVC_PLUGIN_ONE_API_KEY_FILE: file,
    // Variables of a plugin that is not selected are ignored.
    SVC_PLUGIN_THROWER_KEY: "k",
    SVC_PLUGIN_THROWER_KY: "k",
  });
  expect(plugins.ofType("term").map(({ slug }) => slug)).toEqual(["two", "one"]);
  expect(plugins.find("term", "one")).toMatchObject({
    secrets: ["from-a-file"],
    timeoutMilliseconds: 30_000,
  });
  expect(plugins.find("term", "three")).toBeUndefined();
  expect(seen).toEqual([{ url: "https://one.example", apiKey: "from-a-file", size: 5 }]);
});

test("reports every fault at once with the alternatives, and no secret", async () => {
  const faults = await faultsOf({
    SVC_PLUGIN_TERM: "one,three",
    SVC_PLUGIN_APPLICATION: "one",
    SVC_PLUGIN_DOCUMENT: "empty",
    SVC_PLUGIN_CONVERSATION: "thrower",
    SVC_PLUGIN_PARTICIPANT: "hanger",
    SVC_PLUGIN_TIMEOUT: "1",
    SVC_PLUGIN_THROWER_KEY: "hunter2",
    SVC_PLUGIN_ONE_API_KEY_FILE: "/nowhere",
    SVC_PLUGIN_ONE_SIZE: "0",
    SVC_PLUGIN_ONE_URI: "https://one.example",
  });
  expect([...faults].sort()).toEqual(
    [
      "SVC_PLUGIN_ONE_URI: plugin one has no such variable; it has SVC_PLUGIN_ONE_URL, SVC_PLUGIN_ONE_API_KEY, SVC_PLUGIN_ONE_SIZE",
      "SVC_PLUGIN_ONE_URL is not set: Where it is",
      "SVC_PLUGIN_ONE_API_KEY_FILE: cannot read /nowhere: the file does not exist",
      'SVC_PLUGIN_ONE_SIZE: "0" is not a whole number of at least 1',
      'SVC_PLUGIN_TERM: there is no plugin "three"; plugins of type term: one, two',
      'SVC_PLUGIN_APPLICATION: "one" is a plugin of type term; plugins of type application: none',
      "SVC_PLUGIN_DOCUMENT: plugin empty of broken is of type document and has no method create, get, update, text, tasks, move, remove",
      'SVC_PLUGIN_CONVERSATION: plugin thrower of broken cannot be set up: "***" is not good',
      "SVC_PLUGIN_PARTICIPANT: plugin hanger of broken was not set up within 1 s",
    ].sort(),
  );
});

test.each([
  [{ type: "string", minLength: 2, pattern: "^k" }, "k", "is shorter than 2 characters"],
  [{ type: "string", maxLength: 2, pattern: "^k" }, "kkk", "is longer than 2 characters"],
  [{ type: "string", minLength: 2, maxLength: 3, pattern: "^k" }, "abc", "does not have the required form"],
  [{ type: "integer", maximum: 9 }, "10", "is not a whole number of at most 9"],
  [{ type: "integer", minimum: 1, maximum: 9 }, "0", "is not a whole number of at least 1 and at most 9"],
])("says how a value breaks %j", (property, value, fault) => {
  const { settings } = settingsOf("one", { type: "object", properties: { key: property } });
  expect(readSettings({ SVC_PLUGIN_ONE_KEY: value }, settings).faults).toEqual([
    `SVC_PLUGIN_ONE_KEY: "${value}" ${fault}`,
  ]);
});

test("does not repeat a secret that is invalid", async () => {
  const exported = {
    ...facts,
    slug: "strict",
    type: "term",
    configSchema: { type: "object", properties: { key: { type: "string", pattern: "^k", secret: true } } },
    create: () => ({ list: () => [] }),
  };
  const environment = { SVC_PLUGIN_TERM: "strict", SVC_PLUGIN_STRICT_KEY: "hunter2" };
  const strict = createRegistry([{ origin: "strict", exported }]);
  const chosen = choosePlugins(strict, readConfig({ ...noPlugins, ...environment }), environment, deps);
  await expect(chosen).rejects.toThrow("SVC_PLUGIN_STRICT_KEY: this value does not have the required form");
});

test("refuses a value that is not a list of slugs when it reads the configuration", () => {
  expect(() => readConfig({ SVC_PLUGIN_TERM: "one two" })).toThrow("SVC_PLUGIN_TERM");
});

test("only built-in plugins get the database", async () => {
  const handed: Record<string, string[]> = {};
  const keeper = (slug: string) => ({
    ...facts,
    slug,
    type: "term",
    configSchema: { type: "object" },
    create: (_: unknown, given: object) => {
      handed[slug] = Object.keys(given).sort();
      return { list: () => [] };
    },
  });
  const both = createRegistry([
    { origin: "svc", exported: keeper("ours"), builtin: true },
    // A package may use any name.
    { origin: "svc", exported: keeper("theirs") },
  ]);
  const environment = { SVC_PLUGIN_TERM: "ours,theirs" };
  await choosePlugins(both, readConfig({ ...noPlugins, ...environment }), environment, deps);
  expect(handed).toEqual({ ours: ["clock", "context", "fetch", "log"], theirs: ["clock", "fetch", "log"] });
});

test("none disables a type, must stand alone, and is not a valid slug", async () => {
  const environment = { SVC_PLUGIN_TERM: "none" };
  const plugins = await choose(environment);
  expect(plugins.ofType("term")).toEqual([]);
  expect(
    await faultsOf({ SVC_PLUGIN_TERM: "one,none", SVC_PLUGIN_ONE_URL: "https://one.example" }),
  ).toContain('SVC_PLUGIN_TERM: there is no plugin "none"; plugins of type term: one, two');
  const none = { ...facts, slug: "none", type: "term", configSchema: { type: "object" }, create: () => ({}) };
  expect(() => createRegistry([{ origin: "x", exported: none }])).toThrow("is reserved");
});
