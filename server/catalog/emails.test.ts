import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let member: Person;
let admin: Person;
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
});
afterAll(() => server[Symbol.asyncDispose]());

test("all spellings of an address denote one individual", async () => {
  const post = (email: string) => member.call("POST", "/individuals/", { name: "Zoe", email });
  const { http, body } = await post("Zoe");
  expect([http, body.email]).toEqual([201, "zoe@example.com"]);
  for (const email of ["zoe@example.com", "ZOE@EXAMPLE.COM"]) {
    expect((await post(email)).http).toBe(409);
    const found = await member.call("GET", `/individuals/?${new URLSearchParams({ email })}`);
    expect(found.body.items).toEqual([body]);
  }
  const change = { name: "Zoe", incident_type_ids: [], incident_priority_ids: [], term_ids: [], version: 1 };
  const put = await admin.call("PUT", `/individuals/${body.id}`, { ...change, email: "Zoë@Example.com" });
  expect([put.http, put.body.email]).toEqual([200, "zoë@example.com"]);
});

test("all spellings of a team's address are the same list, which several teams may share", async () => {
  const post = (name: string) => member.call("POST", "/teams/", { name, email: "Storage" });
  for (const name of ["Storage", "Disks"])
    expect(await post(name)).toMatchObject({ http: 201, body: { email: "storage@example.com" } });
});
