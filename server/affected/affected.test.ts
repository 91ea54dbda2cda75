import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { application, incident, service } from "../../drizzle/schema/index.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import { timelineOf } from "../../tests/support/http/participants.ts";

let { server, member, admin, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("affected", (given) => {
  ({ server, member, admin, incidentId, path } = given);
});

const put = (service_ids: unknown, application_ids: unknown, of = path) =>
  member.call("PUT", `${of}/`, { service_ids, application_ids });
const insertService = () => insertRow(server.db, service, { name: `Checkout ${crypto.randomUUID()}` });
const insertApplication = (values: object = {}) =>
  insertRow(server.db, application, { name: `Shop ${crypto.randomUUID()}`, ...values });

test("an incident shows what it affects, and its timeline each change", async () => {
  expect((await member.call("GET", `${path}/`)).body).toEqual({ services: [], applications: [] });
  const [one, two] = [await insertService(), await insertApplication()];
  const { http, body } = await put([one, one], [two]);
  expect(http).toBe(200);
  expect(body).toEqual({
    services: [{ id: one, name: expect.stringContaining("Checkout") }],
    applications: [{ id: two, name: expect.stringContaining("Shop") }],
  });
  expect((await member.call("GET", `${path}/`)).body).toEqual(body);
  expect((await put([one], [two])).body).toEqual(body);
  expect((await put([], [])).body).toEqual({ services: [], applications: [] });
  const events = await timelineOf(server.db, incidentId);
  expect(events.map(({ kind }) => kind)).toEqual(["incident.affects", "incident.affects"]);
});

test("what does not exist, or has disappeared from its source, is refused without an effect", async () => {
  const one = await insertService();
  const deletedAt = server.clock.now();
  const gone = await insertApplication({ deletedAt, source: "s", externalId: crypto.randomUUID() });
  expect(await put([one, 999_999], [])).toMatchObject({ http: 400, body: { field: "service_ids" } });
  for (const wrong of [[999_999], [gone], ["1"], [0], null, Array(101).fill(1)])
    expect(await put([one], wrong)).toMatchObject({ http: 400, body: { code: "invalid_input" } });
  expect((await member.call("GET", `${path}/`)).body).toEqual({ services: [], applications: [] });
  expect(await timelineOf(server.db, incidentId)).toEqual([]);
});

test("what disappears later stays; what an incident affects cannot be deleted", async () => {
  const [one, two] = [await insertService(), await insertApplication()];
  await put([one], [two]);
  expect(await admin.call("DELETE", `/services/${one}`)).toMatchObject({
    http: 409,
    body: { detail: "This service is referred to by an incident" },
  });
  await server.db
    .update(application)
    .set({
      deletedAt: server.clock.now(),
      source: "s",
      externalId: crypto.randomUUID(),
    })
    .where(eq(application.id, two));
  expect((await put([], [two])).body.applications).toHaveLength(1);
});

test("a hidden incident is answered like one that does not exist", async () => {
  await server.db.update(incident).set({ visibility: "Restricted" });
  for (const of of [path, "/incidents/999999/affected"]) {
    expect((await member.call("GET", `${of}/`)).http).toBe(404);
    expect((await put([999_999], [], of)).http).toBe(404);
  }
  await server.db.update(incident).set({ visibility: "Open" });
});
