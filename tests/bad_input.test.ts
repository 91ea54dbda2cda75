import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { OpenApiDocument, Operation } from "../server/openapi/types.ts";
import { newCertificateRequest } from "./support/domain/certificate_request.ts";
import { fitting } from "./support/http/openapi_arbitrary.ts";
import type { Person } from "./support/http/people.ts";
import { insertAccess } from "./support/http/permission_access.ts";
import { createWorld, type Place, type World } from "./support/http/permission_world.ts";
import { startTestServer, type TestServer } from "./support/http/server.ts";

// Input that every route refuses. The routes come from the OpenAPI document, so new routes are tested automatically.

let server: TestServer;
let world: World;
let document: OpenApiDocument;
let operations: Route[];
let admin: Person;
let places: [Place, Place];

interface Route {
  method: string;
  path: string;
  operation: Operation;
}

beforeAll(async () => {
  server = await startTestServer({
    pluginDocument: "markdown",
    mtlsUrl: "https://svc.example.com:8443",
  });
  world = await createWorld(server);
  admin = world.admin;
  places = [await world.newPlace("Open"), await world.newPlace("Open")];
  document = (await (await server.fetch("/openapi/json")).json()) as OpenApiDocument;
  operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation }))
      // The first would revoke the token of these tests; Weep's paths have different errors (server/weep).
      .filter(
        ({ operation }) =>
          operation.security?.length && path !== "/tokens/current" && !path.startsWith("/api/"),
      ),
  );
  expect(operations.length).toBeGreaterThan(70);
});
afterAll(() => server[Symbol.asyncDispose]());

/** Fills in existing ids, or `value` for the named parameter. */
function addressOf(path: string, place = places[0], name?: string, value?: string): string {
  const ids: Record<string, number | string> = {
    incident_id: place.incidentId,
    document_id: place.documentId,
    task_id: place.taskId,
    report_id: place.reportId,
    event_id: place.eventId,
    participant_id: place.scribeId,
    sign_in_id: crypto.randomUUID(),
  };
  return path.replaceAll(/\{(\w+)\}/g, (_, one) => (one === name ? value! : String(ids[one] ?? 1)));
}

const bodyOf = ({ requestBody }: Operation) => requestBody?.content["application/json"]?.schema;

/** A valid body, the same one each time. */
const goodBody = (operation: Operation): unknown => {
  const schema = bodyOf(operation);
  return schema && fc.sample(fitting(document, schema, 0), { numRuns: 1, seed: 1 })[0];
};

/** Calls each route, and lists those with a different answer. */
async function unlike(
  routes: Route[],
  expected: object,
  ask: (route: Route) => Promise<{ http: number; body: unknown }>,
): Promise<string[]> {
  const others: string[] = [];
  for (const route of routes) {
    const { http, body } = await ask(route);
    const problem = (body ?? {}) as Record<string, unknown>;
    const same = Object.entries({ http, ...problem }).filter(
      ([name, value]) => name in expected && (expected as Record<string, unknown>)[name] === value,
    );
    if (same.length < Object.keys(expected).length)
      others.push(`${route.method} ${route.path}: ${http} ${JSON.stringify(problem).slice(0, 150)}`);
  }
  return others;
}

const unknownName = (what: "field" | "parameter") => ({
  http: 400,
  code: "invalid_input",
  field: "unheard",
  detail: `The ${what} unheard is unknown`,
});

test("an unknown parameter is refused and named", async () => {
  const others = await unlike(operations, unknownName("parameter"), ({ method, path, operation }) => {
    const needed = operation.parameters?.some(({ name }) => name === "q") ? "q=a&" : "";
    return admin.call(method, `${addressOf(path)}?${needed}unheard=1`, goodBody(operation));
  });
  expect(others).toEqual([]);
});

test("a question mark without parameters is none", async () => {
  const plain = operations.filter(
    ({ method, operation }) => method === "GET" && !operation.parameters?.some((one) => one.in === "query"),
  );
  expect(plain.length).toBeGreaterThan(10);
  for (const { path } of plain) {
    const statusOf = async (end: string) => (await admin.call("GET", `${addressOf(path)}${end}`)).http;
    expect([path, await statusOf("?")]).toEqual([path, await statusOf("")]);
  }
});

test("a repeated parameter is refused and named", async () => {
  const searched = operations.filter(({ operation }) =>
    operation.parameters?.some(({ name }) => name === "q"),
  );
  expect(searched.length).toBeGreaterThan(2);
  const expected = { http: 400, code: "invalid_input", field: "q", detail: "The parameter q is given twice" };
  const others = await unlike(searched, expected, ({ method, path }) =>
    admin.call(method, `${addressOf(path)}?q=a&limit=1&q=b`),
  );
  expect(others).toEqual([]);
});

test("an empty ?q= does not filter a list, and is refused by a search", async () => {
  const searched = operations.filter(({ operation }) =>
    operation.parameters?.some(({ name }) => name === "q"),
  );
  expect(searched.length).toBeGreaterThan(8);
  for (const { path } of searched) {
    const { http, body } = await admin.call("GET", `${addressOf(path)}?q=`);
    if (path === "/search") expect([http, body.field]).toEqual([400, "q"]);
    else expect([path, body]).toEqual([path, (await admin.call("GET", addressOf(path))).body]);
  }
});

test("public routes accept any parameter, because others append theirs", async () => {
  for (const path of [
    "/healthcheck",
    "/.well-known/jwks.json",
    "/.well-known/openid-configuration",
    "/openapi",
    "/openapi/json",
  ])
    expect((await server.fetch(`${path}?unheard=1`)).status).toBe(200);
});

test("an unknown field is refused and named", async () => {
  const written = operations.filter(({ operation }) => bodyOf(operation));
  expect(written.length).toBeGreaterThan(25);
  const others = await unlike(written, unknownName("field"), ({ method, path, operation }) =>
    admin.call(method, addressOf(path), { ...(goodBody(operation) as object), unheard: 1 }),
  );
  expect(others).toEqual([]);
});

test("a name that cannot be a field of ours is not repeated", async () => {
  for (const name of ["<b>", "a b", "x".repeat(65), "ü"]) {
    const { http, body } = await admin.call("POST", "/terms/", { text: "term", [name]: 1 });
    expect([http, body.field, body.detail]).toEqual([400, "body", "There is an unknown field"]);
  }
});

test.each(["text/plain", "application/xml", "application/x-www-form-urlencoded", "application/jsonx", "x"])(
  "a body of type %s is refused",
  async (type) => {
    // Also if the body is optional.
    const written = operations.filter(({ operation }) => bodyOf(operation));
    expect(written.length).toBeGreaterThan(25);
    const others = await unlike(written, { http: 415, code: "unsupported_media_type" }, (route) =>
      admin.call(route.method, addressOf(route.path), JSON.stringify(goodBody(route.operation) ?? {}), {
        "content-type": type,
      }),
    );
    expect(others).toEqual([]);
  },
);

const noIds = ["0", "-1", "1.5", "1e3", "0x1", "%20", "a", "9".repeat(16), "9".repeat(400), "%00", "1;drop"];

test.each(noIds)("the id %s is refused, and named", async (id) => {
  for (const route of operations) {
    const [, name] = /\{(\w+)\}(?!.*\{)/.exec(route.path) ?? [];
    // A role has a name instead of a number, and most of these are valid names.
    if (name === undefined || name === "role") continue;
    // So does a certificate, in hexadecimal.
    if (name === "serial" && /^[\da-f]+$/.test(id)) continue;
    const expected = { http: 400, code: "invalid_input", field: name };
    const ask = ({ method, path, operation }: Route) =>
      admin.call(method, addressOf(path, places[0], name, id), goodBody(operation));
    expect(await unlike([route], expected, ask)).toEqual([]);
  }
});

test("the largest id answers 404", async () => {
  const read = operations.filter(({ method, path }) => method === "GET" && path.includes("{"));
  const others = await unlike(read, { http: 404, code: "not_found" }, ({ path }) =>
    admin.call("GET", path.replaceAll(/\{\w+\}/g, "9".repeat(15))),
  );
  expect(others).toEqual([]);
});

const lists = () =>
  operations.filter(({ operation }) => operation.parameters?.some(({ name }) => name === "cursor"));

test.each(["0", "-1", "201", "1e1", "1.5", "", "9".repeat(400)])("limit=%s is refused", async (limit) => {
  const limited = operations.filter(({ operation }) =>
    operation.parameters?.some(({ name }) => name === "limit"),
  );
  expect(limited.length).toBeGreaterThan(14);
  const others = await unlike(limited, { http: 400, code: "invalid_input", field: "limit" }, ({ path }) =>
    admin.call("GET", `${addressOf(path)}?limit=${limit}${path === "/search" ? "&q=a" : ""}`),
  );
  expect(others).toEqual([]);
});

test("a cursor of another list, another sort or another incident is refused", async () => {
  const next = async (address: string) => {
    const { http, body } = await admin.call("GET", `${address}?limit=1`);
    expect([address, http]).toEqual([address, 200]);
    return body.next_cursor as string | null;
  };
  // Gives each list a second page.
  await fillLists();
  const cursors = new Map<string, string>();
  for (const { path } of lists()) {
    const cursor = await next(addressOf(path));
    if (cursor === null) throw new Error(`${path} has one page`);
    cursors.set(path, cursor);
  }
  expect(cursors.size).toBeGreaterThan(13);
  const refused = { http: 400, code: "invalid_input", field: "cursor" };
  for (const [from, cursor] of cursors) {
    expect((await admin.call("GET", `${addressOf(from)}?limit=1&cursor=${cursor}`)).http).toBe(200);
    const others = lists().filter(({ path }) => path !== from);
    const ask = ({ path }: Route) => admin.call("GET", `${addressOf(path)}?cursor=${cursor}`);
    expect(await unlike(others, refused, ask)).toEqual([]);
    if (!from.includes("{")) continue;
    const elsewhere = await admin.call("GET", `${addressOf(from, places[1])}?cursor=${cursor}`);
    expect([from, elsewhere]).toMatchObject([from, { http: 400, body: { field: "cursor" } }]);
  }
});

/** Creates two records of every resource. */
async function fillLists(): Promise<void> {
  for (const n of [1, 2]) {
    const made = { name: `numbat ${n}` };
    const bodies: Record<string, object> = {
      "/individuals": { ...made, email: `numbat-${n}@example.com` },
      "/teams": made,
      "/services": made,
      "/incident_types": made,
      "/applications": made,
      "/incident_priorities": { ...made, reminder_hours: n },
      "/terms": { text: `numbat ${n}` },
      "/definitions": { text: `numbat ${n}` },
      "/certificates": { csr: newCertificateRequest() },
    };
    const of = `/incidents/${places[0].incidentId}`;
    bodies[`${of}/reports`] = { conditions: "Full", actions: "", needs: "" };
    bodies[`${of}/events`] = { description: "Seen" };
    bodies[`${of}/messages`] = { text: "Hello" };
    bodies[`${of}/links`] = { incident: `INC-${(await world.newPlace("Open")).incidentId}`, kind: "related" };
    for (const [path, body] of Object.entries(bodies))
      expect([path, await admin.call("POST", path, body)]).toMatchObject([path, { http: 201 }]);
    const correction = { version: n, description: `numbat ${n}` };
    expect((await admin.call("PUT", `${of}/events/${places[0].eventId}`, correction)).http).toBe(200);
    const text = { text: `numbat ${n}`, version: String(n) };
    expect((await admin.call("PUT", `/documents/${places[0].documentId}/content`, text)).http).toBe(200);
    await insertAccess(server.db, `numbat-${n}`);
    const key = { kind: "ssh", name: `numbat-${n}` };
    expect((await admin.call("POST", "/access/authority_keys/", key)).http).toBe(201);
  }
}
