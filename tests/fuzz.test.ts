import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { OpenApiDocument, Operation, Parameter } from "../server/openapi/types.ts";
import { insertIncident } from "./support/domain/incident.ts";
import { effort } from "./support/effort.ts";
import { fitting } from "./support/http/openapi_arbitrary.ts";
import { type ApiAnswer, type Person, personOf } from "./support/http/people.ts";
import { startTestServer, type TestServer } from "./support/http/server.ts";

/**
 * A fuzzer for the whole API. It reads the routes from the OpenAPI document, so new routes are tested automatically. It
 * sends valid, nearly valid and invalid requests, and no answer may be an internal error or missing from the document.
 * SVC_TEST_EFFORT multiplies the number of requests for each operation.
 */
const runs = effort(25);

let server: TestServer;
let document: OpenApiDocument;
let admin: Person;
let member: Person;
beforeAll(async () => {
  server = await startTestServer();
  document = (await (await server.fetch("/openapi/json")).json()) as OpenApiDocument;
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "alice@example.com");
  await insertIncident(server.db, server.clock.now());
});
afterAll(() => server[Symbol.asyncDispose]());

interface Sent {
  path: string;
  headers: Record<string, string>;
  body?: unknown;
}

/** Parts of an address are text: other values are written as JSON. */
const spelt = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** Values that a path, a query or a header can carry; fetch refuses others. */
const encoded = (value: unknown) => encodeURIComponent(spelt(value).toWellFormed());

function request(path: string, operation: Operation, wild: number): fc.Arbitrary<Sent> {
  const { parameters = [], requestBody } = operation;
  const schema = requestBody?.content["application/json"]?.schema;
  const values = (where: Parameter["in"]) =>
    fc.record(
      Object.fromEntries(
        parameters
          // If-Match is refused if it differs from the version in the body.
          .filter((one) => one.in === where && one.name !== "If-Match")
          .map((one) => [one.name, fitting(document, one.schema, wild)]),
      ),
      where === "path" ? {} : { requiredKeys: [] },
    );
  return fc
    .tuple(
      values("path"),
      values("query"),
      values("header"),
      schema ? fitting(document, schema, wild) : fc.constant(undefined),
    )
    .map(([inPath, inQuery, inHeader, body]) => {
      const address = path.replaceAll(/\{(\w+)\}/g, (_, name) => encoded(inPath[name]) || "1");
      const query = Object.entries(inQuery).map(([name, value]) => `${name}=${encoded(value)}`);
      const headers = Object.entries(inHeader).map(([name, value]) => [name, encoded(value)]);
      return {
        path: query.length > 0 ? `${address}?${query.join("&")}` : address,
        headers: Object.fromEntries(headers),
        body,
      };
    });
}

function judge(operation: Operation, { http, body, headers }: ApiAnswer): void {
  // A plugin that is missing or does not answer, if the document allows it.
  const failed = http >= 500 && !(http === 503 && "503" in operation.responses);
  if (failed) throw new Error(`${http} ${JSON.stringify(body)} ${server.logged.slice(-3).join("")}`);
  if (!(http in operation.responses) && !("default" in operation.responses))
    throw new Error(`${http} is not in the document`);
  if (http >= 400 && headers.get("content-type") === "application/problem+json")
    expect(body).toMatchObject({ title: expect.any(String), status: http, code: expect.any(String) });
  if (http >= 300 && http < 400) throw new Error(`it leads away to ${headers.get("location")}`);
}

test("the document contains the API", () => {
  expect(Object.keys(document.paths).length).toBeGreaterThan(30);
});

const kinds = [
  { kind: "what fits", wild: 0 },
  { kind: "what nearly fits", wild: 8 },
  { kind: "what does not", wild: 50 },
];
// Deletions come last, so that the others find records.
const cases = ["get", "post", "put", "delete"].flatMap((method) =>
  kinds.map((kind) => ({ method, ...kind })),
);

test.each(cases)(
  "$method with $kind never causes an internal error",
  async ({ method, wild }) => {
    let done = 0;
    for (const [path, item] of Object.entries(document.paths)) {
      const operation = item[method];
      // The last one would revoke the token of this test.
      if (!operation || path.startsWith("/noauth/") || path === "/tokens/current") continue;
      const ask = async (sent: Sent, asAdmin: boolean) => {
        const person = asAdmin || method === "delete" ? admin : member;
        const answer = await person.call(method.toUpperCase(), sent.path, sent.body, sent.headers);
        judge(operation, answer);
        if (answer.http < 300) done += 1;
      };
      const property = fc.asyncProperty(request(path, operation, wild), fc.boolean(), ask);
      await fc.assert(property, { numRuns: runs, endOnFailure: true }).catch((error: Error) => {
        throw new Error(`${method} ${path}: ${error.message}`, { cause: error.cause });
      });
    }
    // Otherwise, all requests might have been refused. About 20 of the PUTs, which need the right version, succeed.
    if (wild === 0) expect(done).toBeGreaterThan(0);
  },
  120_000,
);

test("malformed bodies never cause an internal error", async () => {
  const bodies = [
    "",
    "{",
    "null",
    "[]",
    '"',
    "\u0000",
    "{}{}",
    `${"[".repeat(1000)}${"]".repeat(1000)}`,
    `{"a":${'{"a":'.repeat(1000)}1${"}".repeat(1001)}`,
  ];
  const types = ["application/json", "application/json; charset=utf-16", "multipart/form-data"];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of ["post", "put"]) {
      if (!item[method]) continue;
      for (const body of bodies) {
        for (const type of types) {
          const address = path.replaceAll(/\{\w+\}/g, "1");
          const answer = await admin.call(method.toUpperCase(), address, body, { "content-type": type });
          expect(`${method} ${path} ${type} ${body.slice(0, 10)}: ${answer.http}`).toMatch(/: (2|4)\d\d$/);
        }
      }
    }
  }
}, 120_000);

test("a body of 10 MB never causes an internal error", async () => {
  const body = JSON.stringify({ name: "a".repeat(10_000_000) });
  for (const [path, item] of Object.entries(document.paths)) {
    if (!item.post || path.startsWith("/noauth/")) continue;
    const address = path.replaceAll(/\{\w+\}/g, "1");
    const answer = await server
      .fetch(address, { method: "POST", body, headers: { "content-type": "application/json" } })
      // Bun closes the connection of a client that continues to send.
      .then(
        ({ status }) => status,
        () => 413,
      );
    expect(`${path}: ${answer}`).toMatch(/: 4\d\d$/);
  }
  expect((await server.fetch("/healthcheck")).status).toBe(200);
}, 60_000);
