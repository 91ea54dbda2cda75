import { afterAll, beforeAll, expect, test } from "bun:test";
import { document } from "../../drizzle/schema/index.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
beforeAll(async () => {
  server = await startTestServer({ pluginDocument: "markdown" });
  admin = await personOf(server, "root@example.com", ["admin"]);
});
afterAll(() => server[Symbol.asyncDispose]());

const refusal = (field: string) => ({ http: 400, body: { code: "invalid_input", field } });

async function newTerm() {
  const { headers } = await admin.call("POST", "/terms/", { text: `term ${crypto.randomUUID()}` });
  return { path: headers.get("location")!, etag: headers.get("etag")! };
}
const put = (path: string, version: number, headers: Record<string, string>) =>
  admin.call("PUT", path, { text: `term ${crypto.randomUUID()}`, discoverable: true, version }, headers);

test("If-Match repeats the version that a PUT has seen", async () => {
  const { path, etag } = await newTerm();
  const first = await put(path, 1, { "if-match": etag });
  expect([first.http, first.headers.get("etag")]).toEqual([200, '"2"']);
  expect((await put(path, 2, { "if-match": '"1", "2"' })).http).toBe(200);
  expect((await put(path, 3, { "if-match": "*" })).http).toBe(200);
  expect((await put(path, 4, { "if-match": ', "1",, W/"4" , "4",' })).http).toBe(200);
  expect((await put(path, 1, { "if-match": '"1"' })).http).toBe(409);
});

test.each(['"2"', 'W/"1"', "1", '""', '"1', "", '"undefined"'])(
  "If-Match: %s with version 1 changes nothing",
  async (match) => {
    const { path } = await newTerm();
    expect(await put(path, 1, { "if-match": match })).toMatchObject(refusal("If-Match"));
    expect((await admin.call("GET", path)).body.version).toBe(1);
  },
);

test.each([
  ["If-Match", '"1"'],
  ["If-Match", '"undefined"'],
  ["If-None-Match", '"2"'],
])("a DELETE with %s: %s deletes nothing", async (name, tag) => {
  const { path } = await newTerm();
  expect(await admin.call("DELETE", path, undefined, { [name]: tag })).toMatchObject(refusal(name));
  expect((await admin.call("GET", path, undefined, { [name]: tag })).http).toBe(200);
  expect((await admin.call("DELETE", path)).http).toBe(204);
});

test("a user who may not delete gets that error, whatever the condition", async () => {
  const member = await personOf(server, "carol@example.com");
  const { path } = await newTerm();
  const form = { "content-type": "application/x-www-form-urlencoded" };
  expect((await member.call("DELETE", path, "a=1", form)).http).toBe(403);
  expect((await admin.call("DELETE", path, "a=1", form)).http).toBe(204);
});

test("a PUT with If-None-Match: * replaces nothing", async () => {
  const { path } = await newTerm();
  expect(await put(path, 1, { "if-none-match": "*" })).toMatchObject(refusal("If-None-Match"));
  expect((await admin.call("GET", path)).body.version).toBe(1);
});

test("a text's version is whatever its plugin says; a missing version matches nothing", async () => {
  const at = server.clock.now();
  const values = { name: "Runbook", resourceType: "reference", createdAt: at, updatedAt: at };
  const [row] = await server.db.insert(document).values(values).returning({ id: document.id });
  const match = async (version: string | null, tags: string) => {
    const body = { text: "text", version };
    const answer = await admin.call("PUT", `/documents/${row!.id}/content`, body, { "if-match": tags });
    return [answer.http, answer.body.field];
  };
  expect(await match(null, '"null"')).toEqual([400, "If-Match"]);
  expect(await match("a,b", '"a", "b"')).toEqual([400, "If-Match"]);
  expect(await match('a", "b', '"a", "b"')).toEqual([400, "If-Match"]);
  // Parsed as one tag, which differs from the text's.
  expect(await match("a,b", '"x", "a,b"')).toEqual([409, undefined]);
});

test("a text is returned with its version as ETag, which If-Match accepts", async () => {
  const { body } = await admin.call("POST", "/documents/", { name: "Runbook", resource_type: "reference" });
  const path = `/documents/${body.id}/content`;
  const put = await admin.call("PUT", path, { text: "one", version: null });
  const got = await admin.call("GET", path);
  for (const { headers, body } of [put, got]) expect(headers.get("etag")).toBe(`"${body.version}"`);
  const match = { "if-match": got.headers.get("etag")! };
  expect((await admin.call("PUT", path, got.body, match)).http).toBe(200);
});

test("every PUT that takes If-Match has a GET that returns an ETag", async () => {
  const paths = server.app.routes.filter(({ method }) => method === "PUT").map(({ path }) => path);
  expect(paths.length).toBeGreaterThan(10);
  const tested = new Set(["/documents/:document_id/content", "/access/roles/:role"]);
  const at = server.clock.now();
  const ids = await insertIncident(server.db, at);
  const fields: Record<string, object> = {
    documents: { name: "x", resource_type: "x" },
    incidents: {
      title: "x",
      description: "",
      incident_type_id: ids.incidentTypeId,
      incident_priority_id: ids.incidentPriorityId,
    },
    tasks: { incident_id: ids.incidentId, description: "x" },
    individuals: { name: "x", email: "x@example.com" },
    incident_priorities: { name: "x", reminder_hours: 1 },
    terms: { text: "x" },
    definitions: { text: "x" },
  };
  for (const path of paths.filter((path) => !tested.has(path))) {
    const [, list = ""] = path.split("/");
    const made = await admin.call("POST", `/${list}/`, fields[list] ?? { name: "x" });
    expect([list, made.http]).toEqual([list, 201]);
    const { headers } = await admin.call("GET", made.headers.get("location")!);
    expect([list, headers.get("etag")]).toEqual([list, '"1"']);
  }
});
