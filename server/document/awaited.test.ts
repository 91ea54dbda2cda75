import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { keyOfText } from "../../core/incident/steps/make_documents.ts";
import { document, event, flowStep, incident } from "../../drizzle/schema/index.ts";
import { fakeDocument } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { insertEmptyIncident } from "../../tests/support/http/participants.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

// A document whose plugin did not answer in time when its incident was reported: the record exists, and waits for its
// text.

const fake = fakeDocument();
const { slug: pluginSlug } = fake.plugin;
let server: TestServer;
let member: Person;
let ids: IncidentIds;
let incidentId: number;
let id: number;
let path: string;
beforeAll(async () => {
  server = await startTestServer({}, pluginsOf(fake));
  member = await personOf(server, "carol@example.com");
  ids = await insertIncident(server.db, server.clock.now());
});
beforeEach(async () => {
  const at = server.clock.now();
  incidentId = await insertEmptyIncident(server.db, ids, at);
  const [row] = await server.db
    .insert(document)
    .values({ name: "Notes", resourceType: "incident", incidentId, pluginSlug, createdAt: at, updatedAt: at })
    .returning();
  id = row!.id;
  path = `/documents/${id}/content`;
});
afterAll(async () => {
  fake.assertExpected();
  await server[Symbol.asyncDispose]();
});

const rowOf = async () => (await server.db.select().from(document).where(eq(document.id, id)))[0];
const told = async () => {
  const rows = await server.db.select().from(event).where(eq(event.incidentId, incidentId)).orderBy(event.id);
  return rows.map(({ kind, actor }) => `${kind} by ${actor}`);
};
const put = () => member.call("PUT", path, { text: "Ours", version: null });

test("it says that its text is pending, and what helps", async () => {
  expect(await member.call("GET", path)).toMatchObject({
    http: 409,
    body: { detail: expect.stringContaining("POST /incidents/{incident_id}/retry tries again, PUT writes") },
  });
});

test("the first user to write a text creates it under the step's key; the step then creates none", async () => {
  fake.answer({
    create: [() => ({ resourceId: `r${id}` })],
    get: [() => ({ name: "Notes", version: "1" })],
    update: [() => ({ version: "2" })],
  });
  expect(await put()).toMatchObject({ http: 200, body: { text: "Ours", version: "2" } });
  expect(fake.to("create").at(-1)?.key).toBe(keyOfText({ incident: { id: incidentId } }, "incident"));
  expect(fake.to("update").at(-1)).toMatchObject({ document: { resourceId: `r${id}` }, text: "Ours" });
  expect(await told()).toEqual([
    "document.created by carol@example.com",
    "document.updated by carol@example.com",
  ]);
  const step = "reported:documents";
  await server.db.insert(flowStep).values({ incidentId, step, state: "Failed", error: "x" });
  await member.call("POST", `/incidents/${incidentId}/retry`, { step });
  const ofIncident = eq(flowStep.incidentId, incidentId);
  // A further call to the plugin would fail the test.
  await until("the step to be done", async () => {
    const [row] = await server.db.select().from(flowStep).where(ofIncident);
    return row?.state === "Done";
  });
  expect(await rowOf()).toMatchObject({ pluginSlug, resourceId: `r${id}`, version: 2 });
});

test("if a text arrives meanwhile, it is kept", async () => {
  fake.answer({
    create: async () => {
      await server.db.update(document).set({ resourceId: "theirs" }).where(eq(document.id, id));
      return { resourceId: "ours" };
    },
  });
  expect(await put()).toMatchObject({ http: 409 });
  expect((await rowOf())?.resourceId).toBe("theirs");
  expect(await told()).toEqual([]);
});

test("if it is deleted before its plugin could create the text, the answer is 404", async () => {
  fake.answer({
    create: async () => {
      await server.db.delete(document).where(eq(document.id, id));
      throw new Error("no such row");
    },
  });
  expect(await put()).toMatchObject({ http: 404, body: { detail: "There is no such document" } });
});

test.each([
  ["deleted", () => server.db.delete(document).where(eq(document.id, id))],
  [
    "made unreadable for them",
    () => server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId)),
  ],
])("if it is %s meanwhile, the answer is 404", async (_, change) => {
  fake.answer({
    create: async () => {
      await change();
      return { resourceId: `ours ${id}` };
    },
  });
  expect(await put()).toMatchObject({
    http: 404,
    body: { code: "not_found", detail: "There is no such document" },
  });
  expect((await rowOf())?.resourceId ?? null).toBeNull();
  expect(await told()).toEqual([]);
});

test("it never gets another document's text", async () => {
  await server.db
    .update(document)
    .set({ pluginSlug, resourceId: "1" })
    .where(eq(document.id, ids.documentId));
  fake.answer({ create: () => ({ resourceId: "1" }) });
  expect(await put()).toMatchObject({
    http: 503,
    body: { detail: `${pluginSlug} returned the text of another document` },
  });
  expect((await rowOf())?.resourceId).toBeNull();
});
