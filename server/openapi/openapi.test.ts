import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { insertIncident } from "../../tests/support/domain/incident.ts";
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

test("a third-party linter finds no error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-openapi-"));
  const file = join(folder, "openapi.json");
  await Bun.write(file, JSON.stringify(document));
  const linter = Bun.spawn({
    cmd: ["node", require.resolve("@redocly/cli/bin/cli.js"), "lint", "--extends", "recommended", file],
    // Use the linter's defaults, not files in the working directory; disable telemetry and update checks.
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

test("every route is in the document, or is a page", () => {
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
  expect([...known].filter((route) => / \/approve|sign_in\b|validator|css/.test(route))).toEqual([]);
});

test("the document states correctly which routes require a token", async () => {
  for (const { method, path, operation } of operations) {
    const address = path.replaceAll(/\{\w+\}/g, "1");
    const { status } = await server.fetch(address, { method: method.toUpperCase() });
    expect(`${method} ${path}: ${status === 401}`).toBe(
      `${method} ${path}: ${operation.security!.length > 0}`,
    );
  }
});

test("every resource has a sentence in server/openapi/document.ts", () => {
  const used = new Set(operations.flatMap(({ operation }) => operation.tags!));
  const described = new Set(document.tags.map(({ name }) => name));
  expect([...used.symmetricDifference(described)]).toEqual([]);
});

test("every operation has a unique name, a summary, and schemas", () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { method, path, operation } of operations) {
    expect(`${method} ${path}: ${operation.summary}`).toMatch(/: [A-Z][\w' -]+$/);
    if (method === "put") expect(operation.requestBody?.content["application/json"]?.schema).toBeDefined();
    for (const [status, { content }] of Object.entries(operation.responses))
      if (status !== "204") expect(`${method} ${path} ${status}: ${typeof content}`).toEndWith("object");
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const described = operation.parameters!.filter((one) => one.in === "path").map(({ name }) => name);
    expect(described).toEqual(named);
  }
});

test("numbers have type number only", () => {
  // Elysia describes its own numbers as texts of digits, with 0 as the default.
  expect(JSON.stringify(document).match(/"(format":"(integer|numeric)|default":0)"?/g)).toBeNull();
});

test("the document states correctly which bodies may be omitted", async () => {
  const admin = await personOf(server, "root@example.com", ["admin"]);
  const written = operations.filter(({ operation }) => operation.requestBody);
  expect(written.length).toBeGreaterThan(25);
  for (const { method, path, operation } of written) {
    const { body } = await admin.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "1"));
    // 904 means the same to Weep.
    const isRefused = ["invalid_input", "904"].includes(body.code);
    expect(`${path}: ${operation.requestBody!.required}`).toBe(`${path}: ${isRefused}`);
  }
});

test("every idempotent POST documents the Idempotency-Key header", () => {
  const posts = operations.filter(({ method }) => method === "post");
  const without = posts.filter(
    ({ operation }) => !operation.parameters!.some(({ name }) => name === "Idempotency-Key"),
  );
  expect(posts.length).toBeGreaterThan(15);
  // A credential is issued anew with each repetition, since its secret is kept nowhere; drafting, renewing and
  // reconciling again does no harm.
  expect(without.map(({ path }) => path)).toEqual([
    "/incidents/{incident_id}/postmortem",
    "/access/roles/{role}/reconcile",
    "/access/leases",
    "/access/leases/{lease_id}/renew",
    "/api/v1/get_credentials",
    "/certificates",
  ]);
});

test("If-Match is documented for PUT only", () => {
  const takes = operations.filter(({ operation }) =>
    operation.parameters!.some(({ name }) => name === "If-Match"),
  );
  expect(new Set(takes.map(({ method }) => method))).toEqual(new Set(["put"]));
  expect(takes.length).toBe(operations.filter(({ method }) => method === "put").length);
});

test("a browser gets a page without scripts, other clients the document", async () => {
  const page = await server.fetch("/openapi", { headers: { accept: "text/html,*/*;q=0.8" } });
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  const text = await page.text();
  expect(text).not.toContain("<script");
  // Lists, because toContain would print the whole page.
  const shown = ({ path, operation }: (typeof operations)[number]) =>
    text.includes(`<code>${path}</code>`) && text.includes(`id="${operation.operationId}"`);
  const missing = operations.filter((one) => !shown(one));
  expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  // Every link within the page has a target.
  const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
  expect(links.filter((link) => !ids.has(link))).toEqual([]);
  const plain = await server.fetch("/openapi");
  expect(plain.headers.get("content-type")).toBe("application/json");
  expect(await plain.json()).toEqual(document);
});

test("a nullable constant may be null", () => {
  const { revocable, public_key } = document.components.schemas.AccessRole!.properties!;
  expect(revocable).toMatchObject({ type: ["string", "null"], enum: ["now", "expiry", null] });
  expect(public_key).toMatchObject({ type: ["string", "null"], enum: ["ssh", "x509", null] });
  const wrong: unknown[] = [];
  JSON.stringify(document, (_, value) => {
    if (value?.type?.includes?.("null") && value.enum?.includes(null) === false) wrong.push(value);
    return value;
  });
  expect(wrong).toEqual([]);
});

test("each GET answers with a media type in the document", async () => {
  const admin = await personOf(server, "root@example.com", ["admin"]);
  for (const kind of ["ssh", "x509"])
    expect((await admin.call("POST", "/access/authority_keys/", { kind, name: "a" })).http).toBe(201);
  const { body } = await admin.call("GET", "/access/authority_keys/");
  const key = body.items.find((one: { kind: string }) => one.kind === "x509");
  await insertIncident(server.db, server.clock.now());
  const values: Record<string, string> = { authority: "a", authority_key_id: String(key.id) };
  const answered: string[] = [];
  for (const { method, path, operation } of operations) {
    if (method !== "get" || path.startsWith("/noauth/")) continue;
    const address = path.replaceAll(/\{(\w+)\}/g, (_, name) => values[name] ?? "1");
    const answer = await admin.open(`${address}${path === "/search" ? "?q=a" : ""}`);
    await answer.body?.cancel();
    const declared = Object.keys(operation.responses[answer.status]?.content ?? {});
    const type = answer.headers.get("content-type")?.split(";")[0];
    expect([path, answer.status, declared]).toEqual([path, answer.status, [type!]]);
    if (answer.status === 200) answered.push(path);
  }
  const files = ["ca.pem", "crl.pem", "crl/{authority_key_id}"].map(
    (name) => `/access/x509/{authority}/${name}`,
  );
  const streams = ["/incidents/stream", "/incidents/{incident_id}/stream"];
  expect(answered).toEqual(expect.arrayContaining([...files, "/access/ssh/{authority}/krl", ...streams]));
});

test("a stream documents the header Last-Event-ID", () => {
  const { parameters } = document.paths["/incidents/{incident_id}/stream"]!.get!;
  expect(parameters?.map(({ name }) => name)).toEqual(["incident_id", "after", "Last-Event-ID"]);
});

test("generators of clients know its version", () => {
  expect(["3.1.0", "3.1.1"]).toContain(document.openapi);
});
