import { afterEach, expect, test } from "bun:test";
import { eq, isNotNull } from "drizzle-orm";
import { flowStep } from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { endDeliveries } from "../../tests/support/domain/delivery.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
afterEach(() => server[Symbol.asyncDispose]());

async function start(fake: ReturnType<typeof fakeConversation>) {
  server = await startTestServer({}, pluginsOf(fake));
  const ids = await insertIncident(server.db, server.clock.now());
  const fields = {
    title: "Disk full",
    description: "",
    visibility: "Open",
    incident_type_id: ids.incidentTypeId,
    incident_priority_id: ids.incidentPriorityId,
  };
  return { fields, member: await personOf(server, "carol@example.com") };
}

const stepsOf = async (incidentId: number) => {
  const steps = await server.db.select().from(flowStep).where(eq(flowStep.incidentId, incidentId));
  return Object.fromEntries(steps.map(({ step, state }) => [step, state]));
};

test("a report is answered once its follow-up steps are done, which the detail shows", async () => {
  using fake = fakeConversation({
    create: () => ({ externalId: "C1" }),
    add: () => undefined,
    send: () => undefined,
    archive: () => undefined,
  });
  const { fields, member } = await start(fake);
  const { body } = await member.call("POST", "/incidents/", fields);
  expect((await member.call("GET", `/incidents/${body.id}`)).body).toMatchObject({
    commander: { email: "carol@example.com" },
    conversations: [{ plugin_slug: fake.plugin.slug, external_id: "C1", archived_at: null }],
  });

  const change = { ...fields, status: "Closed", resolution: null, version: 1 };
  expect((await member.call("PUT", `/incidents/${body.id}`, change)).http).toBe(200);
  // The conversation still has to be told.
  expect(await stepsOf(body.id)).toMatchObject({ [`closed:conversation:${fake.plugin.slug}`]: "Pending" });
  await endDeliveries(server.db, server.clock.now());
  // Five seconds later, on the database's clock.
  await server.db.update(flowStep).set({ dueAt: server.clock.now() }).where(isNotNull(flowStep.dueAt));
  expect((await member.call("POST", `/incidents/${body.id}/retry`)).http).toBe(200);
  expect(await stepsOf(body.id)).toMatchObject({ [`closed:conversation:${fake.plugin.slug}`]: "Done" });
  const { conversations } = (await member.call("GET", `/incidents/${body.id}`)).body;
  expect(conversations).toMatchObject([{ archived_at: server.clock.now().toISOString() }]);
  // As if closed before: no new steps follow.
  await server.db.delete(flowStep).where(eq(flowStep.incidentId, body.id));
  await member.call("PUT", `/incidents/${body.id}`, { ...change, version: 2 });
  expect(await stepsOf(body.id)).toEqual({});
});

test("a report does not wait for a plugin that hangs", async () => {
  const hanging = Promise.withResolvers<never>();
  const fake = fakeConversation({ create: () => hanging.promise }, { timeoutMilliseconds: 60_000 });
  const { fields, member } = await start(fake);
  const { http, body } = await member.call("POST", "/incidents/", fields);
  expect(http).toBe(201);
  expect(await stepsOf(body.id)).toMatchObject({
    [`reported:conversation:${fake.plugin.slug}`]: "Running",
  });
  hanging.reject(new Error("at last"));
});
