import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let member: Person;
let nobody: Person;
let ids: IncidentIds;
beforeAll(async () => {
  server = await startTestServer();
  member = await personOf(server, "carol@example.com");
  nobody = await personOf(server);
  ids = await insertIncident(server.db, server.clock.now());
});
afterAll(() => server[Symbol.asyncDispose]());

const kind = () => ({
  incident_type_id: ids.incidentTypeId,
  incident_priority_id: ids.incidentPriorityId,
});

test.each([
  "'; drop table incident; --",
  "$1 $$ %s {0} $(id) {{7*7}}",
  '<script>alert(1)</script><img src=x onerror="alert(1)">',
  "# H\n\n- [ ] task @alice\n\n[x](javascript:alert(1)) ![](//evil.example/x)",
  "\\x00 \\u0000 \u200f\u0301\u{10ffff}\ufeff",
  '","visibility":"Open","title":"',
  "=cmd|' /C calc'!A0",
])("%p is stored as plain text", async (text) => {
  const title = text.replace(/\s+/g, " ");
  const fields = { title, description: text, ...kind(), visibility: "Restricted" };
  const posted = await member.call("POST", "/incidents/", fields);
  expect(posted).toMatchObject({ http: 201, body: { ...fields, title: title.trim() } });
  const path = `/incidents/${posted.body.id}`;
  const change = { ...fields, status: "Closed", resolution: text, version: 1 };
  const changed = await member.call("PUT", path, change);
  expect(changed).toMatchObject({ http: 200, body: { ...change, title: title.trim(), version: 2 } });
  expect((await member.call("GET", path)).body).toMatchObject(changed.body);
});

test("the longest texts of surrogate pairs are accepted", async () => {
  const texts = { title: "😀".repeat(250), description: "𝒟".repeat(10_000) };
  const posted = await member.call("POST", "/incidents/", { ...texts, ...kind() });
  expect(posted).toMatchObject({ http: 201, body: texts });
});

describe("a body that", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  test.each([
    ["is empty", ""],
    ["is null", "null"],
    ["is a list", "[]"],
    ["is 1,000 deep", nested(1000)],
    ["is 20,000 deep in a field", `{"title":${nested(20_000)}}`],
    [
      "has a field __proto__",
      '{"title":"a","description":"","incident_type_id":1,"incident_priority_id":1,"__proto__":{"admin":true}}',
    ],
    ["has objects for texts", '{"title":{"toString":"x"},"description":["y"]}'],
    ["has 50,000 unknown fields", `{${Array.from({ length: 50_000 }, (_, i) => `"f${i}":1`).join(",")}}`],
  ])("%s is 400", async (_, body) => {
    for (const [method, path] of [
      ["POST", "/incidents/"],
      ["PUT", `/incidents/${ids.incidentId}`],
    ] as const) {
      const answer = await member.call(method, path, body);
      expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input" } });
      expect(JSON.stringify(answer.body).length).toBeLessThan(500);
    }
  });
});

test.each([
  ["GET", "/incidents/?limit=x", undefined],
  ["GET", "/incidents/?nobody_knows=1", undefined],
  ["GET", "/incidents/abc", undefined],
  ["POST", "/incidents/", {}],
  ["PUT", "/incidents/abc", {}],
  ["DELETE", "/incidents/abc", undefined],
])(
  "a stranger learns nothing about what is wrong with %s %s, only that they must sign in",
  async (method, path, body) => {
    expect((await nobody.call(method, path, body)).http).toBe(401);
  },
);
