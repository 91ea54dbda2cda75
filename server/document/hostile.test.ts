import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let member: Person;
let _nobody: Person;
beforeAll(async () => {
  server = await startTestServer();
  member = await personOf(server, "carol@example.com");
  _nobody = await personOf(server);
});
afterAll(() => server[Symbol.asyncDispose]());

const runbook = { name: "Runbook", resource_type: "reference" };

test.each([
  "'; drop table document; --",
  "$1 $$ %s {0} $(id) {{7*7}}",
  '<script>alert(1)</script><img src=x onerror="alert(1)">',
  "# H\n\n- [ ] task @alice\n\n[x](javascript:alert(1)) ![](//evil.example/x)\n\n```sh\nrm -rf /\n```",
  "\\x00 \\u0000 \u200f\u0301\u{10ffff}\ufeff",
  '","incident_id":1,"name":"',
  "=cmd|' /C calc'!A0",
])("%p is stored as plain text", async (text) => {
  const name = text.replace(/\s+/g, " ");
  const posted = await member.call("POST", "/documents/", { ...runbook, name, description: text });
  expect(posted).toMatchObject({
    http: 201,
    body: { name: name.trim(), description: text, incident_id: null },
  });
  const { id } = posted.body;
  expect((await member.call("GET", `/documents/${id}`)).body).toEqual(posted.body);
  const found = await member.call("GET", `/documents/?${new URLSearchParams({ name: name.trim() })}`);
  expect(found.body.items).toEqual([posted.body]);
});

describe("a body that", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  // For the deeply nested ones, the validator alone would take seconds and fail.
  test.each([
    ["is empty", ""],
    ["is not JSON", "{"],
    ["is null", "null"],
    ["is a list", "[]"],
    ["is a text", '"x"'],
    ["is a number", "1e999"],
    ["is 1,000 deep", nested(1000)],
    ["is 1,000 deep in a field", `{"name":${nested(1000)},"resource_type":"x"}`],
    ["is 20,000 deep in a field", `{"name":${nested(20_000)},"resource_type":"x"}`],
    ["is 100,000 deep", nested(100_000)],
    ["is 500,000 deep", nested(500_000)],
    ["never closes", "[".repeat(1_000_000)],
    ["has a field __proto__", '{"name":"a","resource_type":"b","__proto__":{"admin":true}}'],
    ["has numbers for texts", '{"name":1,"resource_type":2}'],
    ["has objects for texts", '{"name":{"toString":"x"},"resource_type":["y"]}'],
    ["has 50,000 unknown fields", `{${Array.from({ length: 50_000 }, (_, i) => `"f${i}":1`).join(",")}}`],
  ])("%s is 400", async (_, body) => {
    const answer = await member.call("POST", "/documents/", body);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input" } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(JSON.stringify(answer.body).length).toBeLessThan(500);
  });

  test("has brackets in a text is accepted", async () => {
    const description = `\\"${nested(100)}`;
    const { http, body } = await member.call("POST", "/documents/", { ...runbook, description });
    expect([http, body.description]).toEqual([201, description]);
  });
});
