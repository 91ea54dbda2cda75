import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { incident, incidentPriority, incidentType, individual, service } from "../../drizzle/schema/index.ts";
import { fakeParticipant } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

// People known only through Restricted incidents. docs/permissions.md lists the routes, tests/hidden.test.ts their
// lists.

let server: TestServer;
let reporter: Person;
let outsider: Person;
let admin: Person;
let kind: { incident_type_id: number; incident_priority_id: number };
let serviceId: number;
let count = 0;
/** The address of a person not mentioned anywhere yet. */
let email: string;
beforeAll(async () => {
  const resolve = () => [];
  const onCall = () => ({ email, name: "From the plugin" });
  server = await startTestServer({}, pluginsOf(fakeParticipant({ resolve, onCall })));
  const { db } = server;
  kind = {
    incident_type_id: await insertRow(db, incidentType, { name: "Outage" }),
    incident_priority_id: await insertRow(db, incidentPriority, { name: "High", reminderHours: 2 }),
  };
  serviceId = await insertRow(db, service, { name: "Storage", pluginSlug: "fake-participant" });
  reporter = await personOf(server, "rita@example.com");
  outsider = await personOf(server, "omar@example.com");
  admin = await personOf(server, "root@example.com", ["admin"]);
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  count += 1;
  email = `person-${count}@example.com`;
});

async function report(visibility: "Open" | "Restricted", by = reporter): Promise<number> {
  const { http, body } = await by.call("POST", "/incidents/", {
    title: "Disk full",
    description: "",
    visibility,
    ...kind,
  });
  expect(http).toBe(201);
  return body.id as number;
}
const add = (incidentId: number, by = reporter, who: object = { email }) =>
  by.call("POST", `/incidents/${incidentId}/participants/`, who);
/** Whether the person's list of individuals contains them. */
async function knows(person: Person): Promise<boolean> {
  const { body } = await person.call("GET", `/individuals/?email=${email}`);
  return body.items.length > 0;
}
const everybody = async () => [await knows(reporter), await knows(admin), await knows(outsider)];

test("a participant of a Restricted incident is known to its participants and admins only", async () => {
  await add(await report("Restricted"));
  expect(await everybody()).toEqual([true, true, false]);
});

test("people known only through an incident become hidden and visible with it", async () => {
  const id = await report("Open");
  await add(id);
  expect(await everybody()).toEqual([true, true, true]);
  const set = (visibility: string) =>
    server.db
      .update(incident)
      .set({ visibility: visibility as "Open" })
      .where(eq(incident.id, id));
  await set("Restricted");
  expect(await everybody()).toEqual([true, true, false]);
  await set("Open");
  expect(await everybody()).toEqual([true, true, true]);
});

test("the reporter of a Restricted incident is known to themselves only", async () => {
  const whistle = await personOf(server, email);
  await report("Restricted", whistle);
  expect(await everybody()).toEqual([false, true, false]);
  expect(await knows(whistle)).toBe(true);
});

describe("any part in an Open incident makes a person known", () => {
  const parts: Record<string, (incidentId: number, person: Person) => Promise<{ http: number }>> = {
    "a status report": (id, person) =>
      person.call("POST", `/incidents/${id}/reports/`, { conditions: "Full", actions: "", needs: "" }),
    "a task of theirs": (id, person) =>
      person.call("POST", "/tasks/", { incident_id: id, description: "Free some" }),
  };
  test.each(Object.entries(parts))("%s", async (_, doPart) => {
    const person = await personOf(server, email);
    await report("Restricted", person);
    expect(await knows(outsider)).toBe(false);
    expect((await doPart(await report("Open"), person)).http).toBe(201);
    expect(await knows(outsider)).toBe(true);
  });
});

test("an actor who does not know them can create them, as if they were new", async () => {
  await add(await report("Restricted"));
  await server.db
    .update(individual)
    .set({ name: "Dana Scully", version: 7 })
    .where(eq(individual.email, email));
  server.clock.advance(60);
  const { http, body, headers } = await outsider.call("POST", "/individuals/", { name: "Dana", email });
  const now = server.clock.now().toISOString();
  expect([http, headers.get("etag")]).toEqual([201, '"1"']);
  expect(body).toMatchObject({ name: "Dana", email, version: 1, created_at: now, updated_at: now });
  expect(await everybody()).toEqual([true, true, true]);
  expect((await outsider.call("POST", "/individuals/", { name: "Dana", email })).http).toBe(409);
});

test("an actor who does not know them can add them to another incident, as if they were new", async () => {
  await add(await report("Restricted"));
  await server.db.update(individual).set({ name: "Dana Scully" }).where(eq(individual.email, email));
  const id = await report("Open", outsider);
  const { http, body } = await add(id, outsider);
  expect([http, body.individual.name]).toEqual([201, `person-${count}`]);
});

test("an actor who does not know them cannot add them by id", async () => {
  const { body } = await add(await report("Restricted"));
  const who = { individual_id: body.individual.id };
  const id = await report("Open", outsider);
  const nobody = await add(id, outsider, { individual_id: 900_000_000 });
  const hidden = await add(id, outsider, who);
  expect([hidden.http, hidden.body.detail]).toEqual([nobody.http, nobody.body.detail]);
  expect((await add(await report("Open"), reporter, who)).http).toBe(201);
});

test("a plugin that names them as on call does not reveal that they are known here", async () => {
  await add(await report("Restricted"));
  const onCall = (person: Person) => person.call("GET", `/services/${serviceId}/on_call`);
  expect((await onCall(outsider)).body.individual).toEqual({ id: null, name: "From the plugin", email });
  expect((await onCall(reporter)).body.individual.id).toBeNumber();
});

test("a person in a rotation, or called for incidents, is known to everybody", async () => {
  const { body } = await add(await report("Restricted"));
  const rotation = { starts_at: "2026-11-01T00:00:00Z", shift_hours: 24, members: [body.individual.id] };
  const fields = { name: `Network ${count}`, plugin_slug: "roster", rotation };
  expect((await admin.call("POST", "/services/", fields)).http).toBe(201);
  expect(await knows(outsider)).toBe(true);

  count += 1;
  email = `person-${count}@example.com`;
  const other = (await add(await report("Restricted"))).body.individual;
  const called = {
    name: "Dana",
    email,
    version: 1,
    incident_priority_ids: [],
    term_ids: [],
    incident_type_ids: [kind.incident_type_id],
  };
  expect((await admin.call("PUT", `/individuals/${other.id}`, called)).http).toBe(200);
  expect(await knows(outsider)).toBe(true);
});
