import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { OpenApiDocument, Operation, Parameter } from "../server/openapi/types.ts";
import { insertIncident } from "./support/domain/incident.ts";
import { effort } from "./support/effort.ts";
import { fitting } from "./support/http/openapi_arbitrary.ts";
import { type ApiAnswer, type Person, personOf } from "./support/http/people.ts";
import { startTestServer, type TestServer } from "./support/http/server.ts";

/**
 * A fuzzer over the whole API: it reads what there is from the OpenAPI document, so a new route is tried by itself. It
 * sends what fits, what nearly fits and what does not at all, and no request may be answered by a failure of ours, or
 * with what the document does not say. SVC_TEST_EFFORT multiplies how many requests each operation gets.
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

/** Elements of an address are text: what has no spelling of its own goes as JSON. */
const spelt = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** What a path, a query or a header can carry; the rest would not leave fetch. */
const encoded = (value: unknown) => encodeURIComponent(spelt(value).toWellFormed());

function request(path: string, operation: Operation, wild: number): fc.Arbitrary<Sent> {
  const { parameters = [], requestBody } = operation;
  const schema = requestBody?.content["application/json"]?.schema;
  const values = (where: Parameter["in"]) =>
    fc.record(
      Object.fromEntries(
        parameters
          // Beside another version than the body's, If-Match is refused whatever else there is.
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
  // A plugin that is not there or does not answer, where the document says that this may be.
  const failed = http >= 500 && !(http === 503 && "503" in operation.responses);
  if (failed) throw new Error(`${http} ${JSON.stringify(body)} ${server.logged.slice(-3).join("")}`);
  if (!(http in operation.responses) && !("default" in operation.responses))
    throw new Error(`${http} is not in the document`);
  if (http >= 400 && headers.get("content-type") === "application/problem+json")
    expect(body).toMatchObject({ title: expect.any(String), status: http, code: expect.any(String) });
  if (http >= 300 && http < 400) throw new Error(`it leads away to ${headers.get("location")}`);
}

test("the document has the API", () => {
  expect(Object.keys(document.paths).length).toBeGreaterThan(30);
});

const kinds = [
  { kind: "what fits", wild: 0 },
  { kind: "what nearly fits", wild: 8 },
  { kind: "what does not", wild: 50 },
];
// Deleting comes last, so that the others have something to find.
const cases = ["get", "post", "put", "delete"].flatMap((method) =>
  kinds.map((kind) => ({ method, ...kind })),
);

test.each(cases)(
  "no failure of ours is answered to $method with $kind",
  async ({ method, wild }) => {
    let done = 0;
    for (const [path, item] of Object.entries(document.paths)) {
      const operation = item[method];
      // The last one would end the very token with which all this is asked.
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
    // Else it would have tried nothing but refusals. Of the PUTs, which need the right version, about 20 do something.
    if (wild === 0) expect(done).toBeGreaterThan(0);
  },
  120_000,
);

test("nor to bodies that are none", async () => {
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
  const types = [
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "application/xml",
    "multipart/form-data",
    "a/b/c",
    "application/x-www-form-urlencoded",
  ];
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

test("nor to a body of 10 MB", async () => {
  const body = JSON.stringify({ name: "a".repeat(10_000_000) });
  for (const [path, item] of Object.entries(document.paths)) {
    if (!item.post || path.startsWith("/noauth/")) continue;
    const address = path.replaceAll(/\{\w+\}/g, "1");
    const answer = await server
      .fetch(address, { method: "POST", body, headers: { "content-type": "application/json" } })
      // Bun hangs up on who goes on sending.
      .then(
        ({ status }) => status,
        () => 413,
      );
    expect(`${path}: ${answer}`).toMatch(/: 4\d\d$/);
  }
  expect((await server.fetch("/healthcheck")).status).toBe(200);
}, 60_000);
