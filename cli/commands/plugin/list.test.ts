import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readConfig } from "../../../core/config.ts";
import type { Context } from "../../../core/context.ts";
import { callPlugin } from "../../../core/plugin/call.ts";
import { openPlugins } from "../../../core/plugin/open.ts";
import { builtinPlugins } from "../../../plugins/builtin.ts";
import { svc } from "../../../tests/support/cli/process.ts";
import { noPlugins } from "../../../tests/support/domain/plugins.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-plugins-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** A package in the `node_modules` of the directory. */
function install(name: string, index: string, manifest: object | string = { exports: "./index.js" }): void {
  const folder = join(directory, "node_modules", name);
  mkdirSync(folder, { recursive: true });
  const text =
    typeof manifest === "string"
      ? manifest
      : JSON.stringify({ name, version: "1.0.0", type: "module", ...manifest });
  writeFileSync(join(folder, "package.json"), text);
  writeFileSync(join(folder, "index.js"), index);
}

/** The plugin in docs/plugins.md, and its package.json. */
function example(): { index: string; manifest: string } {
  const page = readFileSync(join(import.meta.dir, "../../../docs/plugins.md"), "utf8");
  const blocks = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => block!);
  const manifests = [...page.matchAll(/`(\{"name": "svc-plugin-glossary".*?\})`/g)].map(([, text]) => text!);
  expect([blocks.length, manifests.length]).toEqual([1, 1]);
  return { index: blocks[0]!, manifest: manifests[0]! };
}

const list = async (env: Record<string, string> = {}, ...args: string[]) =>
  await svc(["plugin", "list", ...args], env, directory);

const builtin = `\
Title                    Slug                Version  Type               Author       Description
Document matcher         document-matcher    1.0.0    document-resolver  svc          Proposes documents that are linked to an incident's type, priority or the terms in its text
Roster                   roster              1.0.0    participant        svc          Proposes people and teams by type, priority and terms, and finds who is on call by rotation
Markdown                 markdown            1.0.0    document           svc          Stores documents as Markdown in svc's database, and finds the tasks in them
Incident channel         channel             1.0.0    conversation       svc          Provides a channel in svc for each incident
Mail                     mail                1.0.0    conversation       svc          Sends an incident's messages to its participants by mail (SMTP)
Signed webhook           webhook             1.0.0    conversation       svc          Sends an incident's messages to an HTTP address, signed according to Standard Webhooks
Mailing list             mailing-list        1.0.0    participant_group  svc          Keeps the participants and teams of an incident in svc's database, for the mail plugin
Company glossary         glossary            1.0.0    term               Example Ltd  Reads terms from the company's glossary service
Terms from files         term-source         1.0.0    term               svc          Reads terms and definitions from files and URLs (YAML, JSON, CSV)
Applications from files  application-source  1.0.0    application        svc          Reads applications from files and URLs (YAML, JSON, CSV)
Backstage catalog        backstage-catalog   1.0.0    application        svc          Reads applications from Backstage: catalog-info.yaml, or the catalog's API
AWS with a stored key    aws-assume-role     1.0.0    credential         svc          Issues sessions of an AWS role, with the stored key of an IAM user
AWS with web identity    aws-web-identity    1.0.0    credential         svc          Issues sessions of an AWS role that trusts this server as an OpenID provider
Kubernetes tokens        kubernetes-token    1.0.0    credential         svc          Issues tokens for a service account of a Kubernetes cluster
OpenID Connect tokens    oidc-token          1.0.0    credential         svc          Issues short-lived tokens about the user, for a service that trusts this server as an OpenID provider
PostgreSQL roles         postgresql-role     1.0.0    credential         svc          Creates a PostgreSQL role for each lease, as a member of existing roles
SSH certificates         ssh-ca              1.0.0    credential         svc          Signs users' SSH keys, for hosts that trust the authority
X.509 certificates       x509-ca             1.0.0    credential         svc          Signs X.509 client certificates for users, for servers that trust the authority
`;

test("lists the included plugins under both command names", async () => {
  const stdout = builtin
    .split("\n")
    .filter((line) => !line.includes("glossary"))
    .join("\n")
    .replaceAll("Author       ", "Author  ")
    .replaceAll("  svc          ", "  svc     ");
  expect(await list()).toEqual({ code: 0, stdout, stderr: "" });
  expect(await svc(["plugins", "list"], {}, directory)).toEqual({ code: 0, stdout, stderr: "" });
});

test("lists the plugin of docs/plugins.md, also as JSON", async () => {
  const { index, manifest } = example();
  install("svc-plugin-glossary", index, manifest);
  const env = { SVC_PLUGIN_PACKAGES: "svc-plugin-glossary" };
  expect(await list(env)).toEqual({ code: 0, stdout: builtin, stderr: "" });
  const { stdout, code } = await list(env, "--json");
  expect(code).toBe(0);
  const plugins: Record<string, string>[] = JSON.parse(stdout);
  expect(plugins).toHaveLength(builtin.trim().split("\n").length - 1);
  expect(plugins.find(({ slug }) => slug === "glossary")).toEqual({
    title: "Company glossary",
    slug: "glossary",
    version: "1.0.0",
    type: "term",
    author: "Example Ltd",
    description: "Reads terms from the company's glossary service",
  });
});

test("the plugin of docs/plugins.md works", async () => {
  const { index, manifest } = example();
  install("svc-plugin-glossary", index, manifest);
  await using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ headers }) =>
      headers.get("x-api-key") === "hunter2"
        ? Response.json([{ key: "T1", word: "SLO", meaning: "A promise" }])
        : new Response("hunter2?", { status: 401 }),
  });
  const silent = () => {};
  const call = async (apiKey: string) => {
    const environment = {
      SVC_PLUGIN_PACKAGES: "svc-plugin-glossary",
      SVC_PLUGIN_TERM: "glossary",
      SVC_PLUGIN_GLOSSARY_URL: `http://127.0.0.1:${server.port}`,
      SVC_PLUGIN_GLOSSARY_API_KEY: apiKey,
    };
    const { plugins } = await openPlugins({
      config: readConfig({ ...noPlugins, ...environment }),
      environment,
      builtin: builtinPlugins,
      directory,
      deps: {
        fetch: (url, init) => fetch(url, init),
        clock: { now: () => new Date(0) },
        context: {} as Context,
        log: { debug: silent, info: silent, warn: silent, error: silent },
      },
    });
    return await callPlugin(plugins.ofType("term")[0]!, "list", {});
  };
  expect(await call("hunter2")).toEqual({
    ok: true,
    value: [{ externalId: "T1", text: "SLO", definitions: [{ externalId: "T1", text: "A promise" }] }],
  });
  expect(await call("wrong")).toMatchObject({ detail: "glossary failed: the glossary answered 401" });
});

describe("an invalid package", () => {
  const plugin = (slug: string) =>
    `({ title: "T", slug: "${slug}", version: "1.0", type: "term", author: "A", description: "D",
        configSchema: { type: "object" }, create: () => ({ list: () => [] }) })`;

  test("is reported on stderr with the reason, together with all others", async () => {
    install("throws", '\nthrow new Error("hunter2");');
    install("syntax", "export default {");
    install("empty", "");
    install("broken-manifest", "export default 1;", "{");
    install("no-entry", "export default 1;", { exports: "./nowhere.js" });
    const names = [
      "throws",
      "syntax",
      "../evil",
      "https://evil.example",
      "missing",
      "broken-manifest",
      "no-entry",
    ];
    const { code, stdout, stderr } = await list({ SVC_PLUGIN_PACKAGES: names.join(", ") });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).not.toContain("hunter2");
    expect(stderr.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/: throws: it cannot be loaded \(Error at \/\S+\/throws\/index\.js:2:\d+\)$/),
      expect.stringMatching(/: syntax: it cannot be loaded \(\/\S+\/syntax\/index\.js:1:\d+: \S.*\)$/),
      "svc: SVC_PLUGIN_PACKAGES: ../evil: this is not the name of an npm package",
      "svc: SVC_PLUGIN_PACKAGES: https://evil.example: this is not the name of an npm package",
      `svc: SVC_PLUGIN_PACKAGES: missing: it is not installed: npm install missing, in ${directory}`,
      "svc: SVC_PLUGIN_PACKAGES: broken-manifest: its package.json names no file to load",
      "svc: SVC_PLUGIN_PACKAGES: no-entry: its package.json names no file to load",
    ]);
  });

  test("never finishes loading, because it waits or loops", async () => {
    install("hangs", "await new Promise(() => setInterval(() => {}, 1000)); export default 1;");
    install("loops", "for (;;);");
    const { loadPackages } = await import("../../../core/plugin/load.ts");
    const options = { directory, environment: process.env, milliseconds: 500 };
    await expect(loadPackages("hangs,loops", options)).rejects.toThrow(
      "SVC_PLUGIN_PACKAGES: hangs: it did not load within 0.5 s\nSVC_PLUGIN_PACKAGES: loops: it did not load within 0.5 s",
    );
  });

  test("exits while it is loaded, or prints", async () => {
    install("exits", "process.exit(0);");
    expect(await list({ SVC_PLUGIN_PACKAGES: "exits" })).toEqual({
      code: 1,
      stdout: "",
      stderr: "svc: SVC_PLUGIN_PACKAGES: exits: it cannot be loaded (its process exited with code 0)\n",
    });
    install("prints", `console.log("hello"); console.error("hello"); export default ${plugin("prints")};`);
    const { code, stdout, stderr } = await list({ SVC_PLUGIN_PACKAGES: "prints" }, "--json");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toHaveLength(builtin.trim().split("\n").length - 1);
  });

  test("is also found in parent folders, and may be CommonJS", async () => {
    install("cjs", `module.exports = ${plugin("cjs")};`, {
      type: "commonjs",
      main: "index.js",
      exports: undefined,
    });
    const below = join(directory, "a/b");
    mkdirSync(below, { recursive: true });
    const { stdout } = await svc(["plugin", "list"], { SVC_PLUGIN_PACKAGES: "cjs" }, below);
    expect(stdout).toContain("\nT                        cjs ");
    // The variable is in .env.
    writeFileSync(join(below, ".env"), "SVC_PLUGIN_PACKAGES=cjs\n");
    expect((await svc(["plugin", "list"], {}, below)).stdout).toBe(stdout);
    expect(dirname(below)).toBe(join(directory, "a"));
  });
});
