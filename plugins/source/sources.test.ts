import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../../core/config.ts";
import type { Context } from "../../core/context.ts";
import { callPlugin } from "../../core/plugin/call.ts";
import { choosePlugins } from "../../core/plugin/choose.ts";
import { createRegistry } from "../../core/plugin/registry.ts";
import { noPlugins } from "../../tests/support/domain/plugins.ts";
import { processorMilliseconds } from "../../tests/support/process/processor_time.ts";
import { builtinPlugins } from "../builtin.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-source-"));
afterAll(() => rmSync(directory, { recursive: true }));

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/terms") return Response.json({ terms: [{ term: "from the net" }] });
    if (pathname === "/yaml")
      return new Response("- term: x", { headers: { "content-type": "text/x-yaml" } });
    if (pathname === "/untold") return new Response("- term: x");
    const headers = { "content-type": "text/html" };
    return new Response("<title>Sign in</title>", { headers });
  },
});
afterAll(() => server.stop(true));
const url = (path: string) => `http://127.0.0.1:${server.port}${path}`;

let files = 0;
function file(extension: string, text: string): string {
  const path = join(directory, `${++files}.${extension}`);
  writeFileSync(path, text);
  return path;
}

const registry = createRegistry([{ origin: "svc", exported: builtinPlugins }]);
const silent = () => {};
const deps = {
  fetch: (address: string, init?: RequestInit) => fetch(address, init),
  context: {} as Context,
  clock: { now: () => new Date(0) },
  log: { debug: silent, info: silent, warn: silent, error: silent },
};

/** Called as the service does: chosen by variables, through callPlugin. */
async function list(type: "term" | "application", slug: string, settings: Record<string, string>) {
  const prefix = `SVC_PLUGIN_${slug.replaceAll("-", "_").toUpperCase()}_`;
  const environment = {
    [`SVC_PLUGIN_${type.toUpperCase()}`]: slug,
    ...Object.fromEntries(Object.entries(settings).map(([key, value]) => [`${prefix}${key}`, value])),
  };
  const plugins = await choosePlugins(
    registry,
    readConfig({ ...noPlugins, ...environment }),
    environment,
    deps,
  );
  const [plugin] = plugins.ofType(type);
  const outcome = await callPlugin(plugin!, "list", {});
  return outcome.ok ? outcome.value : outcome.detail;
}
const terms = (locations: string, more = {}) =>
  list("term", "term-source", { LOCATIONS: locations, ...more });
const applications = (locations: string) =>
  list("application", "application-source", { LOCATIONS: locations });
const backstage = (locations: string, more = {}) =>
  list("application", "backstage-catalog", { LOCATIONS: locations, ...more });

const sha256 = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
const definition = (text: string) => ({ externalId: sha256(text), text });

describe("terms", () => {
  test("are read from YAML, JSON, CSV and an address together", async () => {
    const yaml = file(
      "yaml",
      "- term: runbook\n  id: 7\n  definitions: [Step by step., A page.]\n  discoverable: false\n",
    );
    const json = file("JSON", '[{"term":" SLO ","definition":"A promise."}]');
    const csv = file("csv", 'term,definition,owner\nSLO,A promise.,ada\nSLO,"A number, too.",\nMTTR,,\n');
    expect(await terms(`${yaml} ${json}\n${csv} ${url("/terms")} ${url("/yaml")}`)).toEqual([
      {
        externalId: "7",
        text: "runbook",
        definitions: [definition("Step by step."), definition("A page.")],
        discoverable: false,
      },
      {
        externalId: "SLO",
        text: "SLO",
        definitions: [definition("A promise."), definition("A number, too.")],
      },
      { externalId: "MTTR", text: "MTTR", definitions: [] },
      { externalId: "from the net", text: "from the net", definitions: [] },
      { externalId: "x", text: "x", definitions: [] },
    ]);
  });

  test("very many definitions or columns take no time, and a term with more than svc takes is refused", async () => {
    const before = process.cpuUsage();
    const rows = Array.from({ length: 100_000 }, (_, at) => `t,${at}`).join("\n");
    expect(await terms(file("csv", `term,definition\n${rows}\nother,\n`))).toMatchObject([
      { text: "t", definitions: { length: 51 } },
      { text: "other" },
    ]);
    const many = `of: &of [${"x,".repeat(20_000)}]\nterms:\n${"- &t { term: t, definitions: *of }\n"}${"- *t\n".repeat(500)}`;
    const refused = (await terms(file("yaml", many))) as object[];
    expect(refused[0]).toMatchObject({ unreadable: expect.stringContaining("more than 50 definitions") });
    expect(await terms(file("csv", Array.from({ length: 200_000 }, (_, at) => at).join()))).toEqual([]);
    expect(processorMilliseconds(before)).toBeLessThan(5000);
  });

  test("an empty list is valid, an empty file is not", async () => {
    expect(await terms(file("json", "[]"))).toEqual([]);
    expect(await terms(file("yaml", " \n"))).toEndWith(".yaml is empty");
  });

  const broken: [string, string, string, string][] = [
    ["invalid YAML", "yaml", "- term: [", "is not YAML"],
    ["invalid JSON", "json", '[{"term": "hunter2"', "is not JSON"],
    ["invalid CSV", "csv", 'term\n"hunter2', "is not CSV: line 2: an unclosed quote"],
    ["a word", "yaml", "hunter2", "contains no list, neither at the top level nor as terms"],
    ["another list", "yaml", "applications: []", "contains no list, neither at the top level nor as terms"],
    ["the depth of a well", "yaml", "[".repeat(100_000), "is not YAML"],
    [
      "aliases of aliases",
      "yaml",
      `a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 12 }, (_, at) => `a${at + 1}: &a${at + 1} [${Array(10).fill(`*a${at}`).join(",")}]\n`).join("")}`,
      "is not YAML",
    ],
  ];
  for (const [name, extension, text, fault] of broken) {
    test(`are not read from ${name}`, async () => {
      const detail = await terms(file(extension, text));
      expect(detail).toEndWith(fault);
      expect(detail).not.toContain("hunter2");
    });
  }

  const badRecords: [string, string, string, object][] = [
    ["is a word", "yaml", "- term: good\n- hunter2", { unreadable: "record 2: it is not an object" }],
    ["has no term", "csv", "term,definition\ngood,\n,hunter2", { unreadable: "record 2: it has no term" }],
    [
      "has a term that is a number",
      "yaml",
      "- term: good\n- {term: 1.20, id: 7}",
      { externalId: "7", unreadable: "record 2: term is not a text: put it in quotes" },
    ],
    [
      "has invalid definitions",
      "yaml",
      "- term: good\n- term: a\n- {term: a, definitions: hunter2}",
      { externalId: "a", unreadable: "record 3: definitions is not a list of texts" },
    ],
    [
      "has an invalid value of discoverable",
      "csv",
      "term,discoverable\ngood,\na,maybe",
      { externalId: "a", unreadable: "record 2: discoverable must be true or false" },
    ],
    [
      "has a duplicate id",
      "yaml",
      "- term: good\n- {term: a, id: 1}\n- {term: b, id: 1}",
      { externalId: "1", unreadable: "record 3: another term has the same id" },
    ],
    [
      "contains itself",
      "yaml",
      "- term: good\n- &a\n  term: x\n  definitions: [*a]",
      { externalId: "x", unreadable: "record 2: definitions is not a list of texts" },
    ],
    [
      "has too many fields",
      "csv",
      "term,definition\nhunter2,a,b\ngood,\n",
      { unreadable: "record 1: line 2: 3 fields for 2 columns" },
    ],
  ];
  for (const [name, extension, text, bad] of badRecords) {
    test(`a record that ${name} does not affect the others`, async () => {
      const path = file(extension, text);
      const read = JSON.stringify(await terms(path)).replaceAll(`${path}, `, "");
      expect(JSON.parse(read)).toEqual([{ externalId: "good", text: "good", definitions: [] }, bad]);
    });
  }

  test("one broken location fails the whole list", async () => {
    const good = file("yaml", "- term: a");
    expect(await terms(`${good} ${good}.nowhere.yaml`)).toEndWith("cannot be read (ENOENT)");
  });

  test("a sign-in page is not a list in any format", async () => {
    const fault = "answered with a web page (text/html), perhaps a sign-in page";
    expect(await terms(url("/page.json"))).toEndWith(fault);
    expect(await terms(url("/page"), { FORMAT: "yaml" })).toEndWith(fault);
  });

  test("a format that cannot be inferred must be configured", async () => {
    expect(await terms(url("/untold"))).toEndWith(
      "unknown format: set it, because neither the name nor the media type shows it",
    );
    expect(await terms(url("/untold"), { FORMAT: "yaml" })).toHaveLength(1);
  });

  test("a location that is too large fails", async () => {
    expect(await terms(file("json", `["${"x".repeat(10_000_000)}"]`))).toEndWith("is larger than 10 MB");
  });

  test("invalid locations prevent the start", async () => {
    const refused = "SVC_PLUGIN_TERM: plugin term-source of svc cannot be set up: a location must be";
    await expect(terms("file:///etc/passwd")).rejects.toThrow(refused);
  });
});

describe("applications", () => {
  test("are read from CSV and YAML", async () => {
    const csv = file("csv", 'id,name,description,uri\npay,Payments,"Cards, transfers",https://pay.example\n');
    const yaml = file("yml", "applications:\n  - name: Ledger\n");
    expect(await applications(`${csv} ${yaml}`)).toEqual([
      {
        externalId: "pay",
        name: "Payments",
        description: "Cards, transfers",
        uri: "https://pay.example",
      },
      { externalId: "Ledger", name: "Ledger" },
    ]);
  });

  test("one with an invalid link or without a name does not affect the others", async () => {
    const uri = file("yaml", "- {name: a, uri: 'javascript:alert(1)'}\n- name: b");
    expect(await applications(uri)).toEqual([
      { externalId: "a", unreadable: `${uri}, record 1: uri is not an http(s) address` },
      { externalId: "b", name: "b" },
    ]);
    const csv = file("csv", "name,uri\n,\nb,\n");
    expect(await applications(csv)).toEqual([
      { unreadable: `${csv}, record 1: it has no name` },
      { externalId: "b", name: "b" },
    ]);
  });
});

describe("Backstage", () => {
  const component = `
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: payments
  title: Payments
  description: Cards and transfers
  annotations:
    backstage.io/source-location: url:https://git.example/payments
  links:
    - url: https://pay.example
spec: { type: service, owner: team-pay, lifecycle: production }
---
apiVersion: backstage.io/v1alpha1
kind: API
metadata: { name: payments-api }
---
`;
  const expected = {
    externalId: "component:default/payments",
    name: "Payments",
    description: "Cards and transfers",
    uri: "https://pay.example",
  };

  test("reads entities of the wanted kinds, from a file and from the API's JSON", async () => {
    const path = file("yaml", component);
    expect(await backstage(path)).toEqual([expected]);
    expect(await backstage(path, { KINDS: "component, Api" })).toEqual([
      expected,
      { externalId: "api:default/payments-api", name: "payments-api" },
    ]);
    const entity = {
      apiVersion: "backstage.io/v1beta1",
      kind: "Component",
      metadata: { name: "Ledger", namespace: "Bank", annotations: { "backstage.io/view-url": "https://v" } },
    };
    const ledger = { externalId: "component:bank/ledger", name: "Ledger", uri: "https://v" };
    expect(await backstage(file("json", JSON.stringify([entity])))).toEqual([ledger]);
    expect(await backstage(file("json", JSON.stringify({ items: [entity] })))).toEqual([ledger]);
  });

  const broken: [string, string, string][] = [
    ["is invalid", "a: 1", "it lacks apiVersion, kind or metadata"],
    ["has no name", "{apiVersion: x, kind: Component, metadata: {}}", "it has no metadata.name"],
    [
      "is a Location",
      "{apiVersion: x, kind: Location, metadata: {name: g}}",
      "Locations are not followed: list their targets instead",
    ],
  ];
  for (const [name, text, fault] of broken) {
    test(`an entity that ${name} does not affect the others`, async () => {
      const path = file("yaml", `${text}\n---${component}`);
      expect(await backstage(path)).toEqual([{ unreadable: `${path}, entity 1: ${fault}` }, expected]);
    });
  }

  test("fails if no entity is of the wanted kinds", async () => {
    const path = file("yaml", "{apiVersion: x, kind: Group, metadata: {name: g}}");
    expect(await backstage(path)).toEndWith("no entity of kind Component");
  });
});
