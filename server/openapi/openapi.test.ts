import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { pages } from "./document.ts";
import type { OpenApiDocument, Operation } from "./types.ts";

let server: TestServer;
let document: OpenApiDocument;
let operations: { method: string; path: string; operation: Operation }[];
beforeAll(async () => {
  server = await startTestServer();
  document = (await (await server.fetch("/openapi/json")).json()) as OpenApiDocument;
  operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
});
afterAll(() => server[Symbol.asyncDispose]());

test("a linter that we did not write finds no error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-openapi-"));
  const file = join(folder, "openapi.json");
  await Bun.write(file, JSON.stringify(document));
  const linter = Bun.spawn({
    cmd: ["node", require.resolve("@redocly/cli/bin/cli.js"), "lint", "--extends", "recommended", file],
    // Its settings, not whatever lies in the working directory; it neither reports home nor looks for news.
    cwd: folder,
    env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = (await new Response(linter.stdout).text()) + (await new Response(linter.stderr).text());
  rmSync(folder, { recursive: true });
  expect(await linter.exited, said).toBe(0);
  expect(said).toContain("is valid");
}, 60_000);

test("every route is in it, or is a page", () => {
  const known = new Set(operations.map(({ method, path }) => `${method} ${path}`));
  const isPage = (path: string) =>
    pages.some((page) => (typeof page === "string" ? page === path : page.test(path)));
  const missing = server.app.routes
    .filter(({ path }) => !isPage(path) && !path.startsWith("/openapi") && !path.startsWith("/noauth/"))
    .map(({ method, path }) => {
      const spelt = path.replaceAll(/:(\w+)/g, "{$1}").replace(/(?<=.)\/$/, "");
      return `${method.toLowerCase()} ${spelt}`;
    })
    .filter((route) => !known.has(route));
  expect(missing).toEqual([]);
  expect([...known]).toContain("get /noauth/v1/challenge_poller/{challengeToken}");
  expect([...known].filter((route) => / \/approve|sign_in|validator|css/.test(route))).toEqual([]);
});

test("it says of each route whether it asks for a token, and that is so", async () => {
  for (const { method, path, operation } of operations) {
    const address = path.replaceAll(/\{\w+\}/g, "1");
    const { status } = await server.fetch(address, { method: method.toUpperCase() });
    expect(`${method} ${path}: ${status === 401}`).toBe(
      `${method} ${path}: ${operation.security!.length > 0}`,
    );
  }
});

test("every resource is described", () => {
  const used = new Set(operations.flatMap(({ operation }) => operation.tags!));
  expect(document.tags.map(({ name }) => name).sort()).toEqual([...used].sort());
});

test("every operation has a name of its own and a summary, and what it takes and answers has a schema", () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { method, path, operation } of operations) {
    expect(`${method} ${path}: ${operation.summary}`).toMatch(/: [A-Z][\w -]+$/);
    if (method === "put") expect(operation.requestBody?.content["application/json"]?.schema).toBeDefined();
    for (const [status, { content }] of Object.entries(operation.responses))
      if (status !== "204") expect(`${method} ${path} ${status}: ${typeof content}`).toEndWith("object");
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const described = operation.parameters!.filter((one) => one.in === "path").map(({ name }) => name);
    expect(described).toEqual(named);
  }
});

test("a number is a number, and nothing that a program has to try both ways", () => {
  // As Elysia describes numbers of its own: texts of digits, with 0 for what is left out.
  expect(JSON.stringify(document).match(/"(format":"(integer|numeric)|default":0)"?/g)).toBeNull();
});

test("it says of each body whether it may be left out, and that is so", async () => {
  const admin = await personOf(server, "root@example.com", ["admin"]);
  const written = operations.filter(({ operation }) => operation.requestBody);
  expect(written.length).toBeGreaterThan(25);
  for (const { method, path, operation } of written) {
    const { body } = await admin.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "1"));
    // 904 is the same to Weep.
    const isRefused = ["invalid_input", "904"].includes(body.code);
    expect(`${path}: ${operation.requestBody!.required}`).toBe(`${path}: ${isRefused}`);
  }
});

test("whatever is done once per key says that it takes one", () => {
  const posts = operations.filter(({ method }) => method === "post");
  const without = posts.filter(
    ({ operation }) => !operation.parameters!.some(({ name }) => name === "Idempotency-Key"),
  );
  expect(posts.length).toBeGreaterThan(15);
  // A credential is issued anew with each repetition, since its secret is kept nowhere; renewing again does no harm.
  expect(without.map(({ path }) => path)).toEqual([
    "/access/leases",
    "/access/leases/{lease_id}/renew",
    "/api/v1/get_credentials",
  ]);
});

test("a PUT, and nothing else, says that it takes the version once more", () => {
  const takes = operations.filter(({ operation }) =>
    operation.parameters!.some(({ name }) => name === "If-Match"),
  );
  expect(new Set(takes.map(({ method }) => method))).toEqual(new Set(["put"]));
  expect(takes.length).toBe(operations.filter(({ method }) => method === "put").length);
});

test("a browser gets a page that runs nothing, everybody else the document", async () => {
  const page = await server.fetch("/openapi", { headers: { accept: "text/html,*/*;q=0.8" } });
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  const text = await page.text();
  expect(text).not.toContain("<script");
  for (const { path, operation } of operations) {
    expect(text).toContain(`<code>${path}</code>`);
    expect(text).toContain(`id="${operation.operationId}"`);
  }
  // Every link within it leads somewhere.
  const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
  expect(links.filter((link) => !ids.has(link))).toEqual([]);
  const plain = await server.fetch("/openapi");
  expect(plain.headers.get("content-type")).toBe("application/json");
  expect(await plain.json()).toEqual(document);
});
