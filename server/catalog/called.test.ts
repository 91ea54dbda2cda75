import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as schema from "../../drizzle/schema/index.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

// A person who is called into an incident joins it and can read it even if it is Restricted, so members must not be able to
// arrange that.

let server: TestServer;
let admin: Person;
let member: Person;
let _alice: number;
let n = 0;
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
  const ids = await insertIncident(server.db, server.clock.now());
  _alice = ids.alice;
});
afterAll(() => server[Symbol.asyncDispose]());

const target = {
  incident_type_ids: () => insertRow(server.db, schema.incidentType, { name: `Type ${++n}` }),
  incident_priority_ids: () =>
    insertRow(server.db, schema.incidentPriority, { name: `Priority ${++n}`, reminderHours: 1 }),
  term_ids: () => insertRow(server.db, schema.term, { text: `term ${++n}` }),
};
type Kind = keyof typeof target;
const none = { incident_type_ids: [], incident_priority_ids: [], term_ids: [] };
const refusal = {
  http: 403,
  body: { code: "forbidden", detail: "Only an admin can choose for which incidents somebody is called" },
};

describe.each([
  ["/individuals/", () => ({ name: "Zoe", email: `zoe-${++n}@example.com` })],
  ["/teams/", () => ({ name: `Team ${++n}`, description: "", email: `team-${++n}@example.com` })],
] as const)("%s", (path, fields) => {
  test.each(Object.keys(target) as Kind[])("a member can neither add nor remove %s", async (kind) => {
    const id = await target[kind]();
    const links = { ...none, [kind]: [id] };
    expect(await member.call("POST", path, { ...fields(), ...links })).toMatchObject(refusal);

    const whole = fields();
    const without = await member.call("POST", path, { ...whole, ...none });
    expect(without.http).toBe(201);
    const to = `${path}${without.body.id}`;
    expect(await member.call("PUT", to, { ...whole, ...links, version: 1 })).toMatchObject(refusal);
    expect((await admin.call("PUT", to, { ...whole, ...links, version: 1 })).http).toBe(200);
    expect(await member.call("PUT", to, { ...whole, ...none, version: 2 })).toMatchObject(refusal);
    const another = { ...links, [kind]: [await target[kind]()] };
    expect(await member.call("PUT", to, { ...whole, ...another, version: 2 })).toMatchObject(refusal);
    const same = { ...whole, ...links, [kind]: [id, id], name: `Renamed ${++n}` };
    expect(await member.call("PUT", to, { ...same, version: 2 })).toMatchObject({
      http: 200,
      body: { ...links, name: same.name, version: 3 },
    });
  });

  test("a member cannot change an email, but may change its letter case", async () => {
    const whole = { ...fields(), ...none };
    const { body } = await member.call("POST", path, whole);
    const put = (email: string | null) =>
      member.call("PUT", `${path}${body.id}`, { ...whole, email, version: 1 });
    expect(await put(`other-${n}@example.com`)).toMatchObject({
      http: 403,
      body: { detail: "Only an admin can change an email" },
    });
    expect((await member.call("GET", `${path}${body.id}`)).body).toEqual(body);
    expect((await put(whole.email.toUpperCase())).http).toBe(200);
  });
});

test.each([
  ["an individual", "/individuals/", { name: "Max", email: "max@example.com" }],
  ["a team", "/teams/", { name: "Disks" }],
])("a member cannot change the text of a term that calls %s", async (_, path, fields) => {
  const { body: term } = await member.call("POST", "/terms/", { text: `disk ${++n}` });
  const put = (person: Person, text: string, version: number) =>
    person.call("PUT", `/terms/${term.id}`, { text, discoverable: true, version });
  expect((await put(member, `disks ${n}`, 1)).http).toBe(200);
  expect((await admin.call("POST", path, { ...fields, term_ids: [term.id] })).http).toBe(201);
  expect(await put(member, `breach ${n}`, 2)).toMatchObject({ http: 403, body: { code: "forbidden" } });
  expect((await put(member, `disks ${n}`, 2)).http).toBe(200);
  expect((await put(admin, `breach ${n}`, 3)).http).toBe(200);
});
