import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { flowStep, incidentPriority, incidentType } from "../../drizzle/schema/index.ts";
import { fakeConversation, fakeParticipantGroup } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

const nothing = () => {};
const refuse = () => Promise.reject(Object.assign(new Error(), { detail: "closed today" }));
// Long enough that a hanging plugin does not time out before the answer stops waiting for it.
const chat = fakeConversation({}, { timeoutMilliseconds: 60_000 });
const group = fakeParticipantGroup();
const plugins = pluginsOf(chat, group);
const conversationStep = "reported:conversation:fake-conversation";
const groupStep = "reported:group:fake-participant-group";

let server: TestServer;
let alice: Person;
let body: object;
beforeAll(async () => {
  server = await startTestServer({}, plugins);
  alice = await personOf(server, "alice@example.com");
  const stamps = { createdAt: server.clock.now(), updatedAt: server.clock.now() };
  const [type] = await server.db
    .insert(incidentType)
    .values({ name: "Outage", ...stamps })
    .returning();
  const [priority] = await server.db
    .insert(incidentPriority)
    .values({ name: "High", reminderHours: 2, ...stamps })
    .returning();
  const kind = { incident_type_id: type!.id, incident_priority_id: priority!.id };
  body = { title: "Disk full", description: "", ...kind };
});
beforeEach(() => {
  chat.answer({ create: refuse, add: nothing, send: nothing });
  group.answer({ create: refuse, add: nothing });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  plugins.assertExpected();
});

/** Reports an incident whose conversation and group steps fail. */
async function reported(more: object = {}): Promise<string> {
  const { http, body: made } = await alice.call("POST", "/incidents/", { ...body, ...more });
  expect(http).toBe(201);
  return `/incidents/${made.id}`;
}

const statesOf = (steps: { step: string; state: string }[]) =>
  Object.fromEntries(steps.map(({ step, state }) => [step, state]));

test("a report succeeds although plugins fail; a retry runs the failed steps and returns all steps", async () => {
  const start = Date.now();
  const path = await reported();
  // The answer to a report does not wait for steps that take long.
  const detail = await until("the steps", async () => {
    const { body: read } = await alice.call("GET", path);
    const states = Object.values(statesOf(read.steps));
    return states.every((state) => state === "Done" || state === "Failed") && read;
  });
  expect(statesOf(detail.steps)).toEqual({
    "reported:commander": "Done",
    [conversationStep]: "Failed",
    [groupStep]: "Failed",
  });
  expect(detail.commander).toMatchObject({ email: "alice@example.com" });
  chat.answer({ create: () => ({}) });
  const answer = await alice.call("POST", `${path}/retry`, {});
  expect(answer.http).toBe(200);
  expect(answer.body).toEqual({
    steps: [
      {
        step: "reported:commander",
        state: "Done",
        attempts: 1,
        error: null,
        due_at: null,
        finished_at: expect.any(String),
      },
      {
        step: conversationStep,
        state: "Done",
        attempts: 1,
        error: null,
        due_at: null,
        finished_at: expect.any(String),
      },
      {
        step: groupStep,
        state: "Failed",
        attempts: 1,
        due_at: expect.any(String),
        finished_at: null,
        error: "fake-participant-group failed: closed today",
      },
    ],
  });
  // On the database's clock, which is this machine's.
  const [commander, conversation, failed] = answer.body.steps;
  for (const at of [
    Date.parse(commander.finished_at),
    Date.parse(conversation.finished_at),
    Date.parse(failed.due_at) - 30_000,
  ]) {
    expect(at).toBeGreaterThan(start - 1000);
    expect(at).toBeLessThan(Date.now() + 1000);
  }
  expect((await alice.call("GET", path)).body.steps).toEqual(answer.body.steps);
});

test("a named step runs alone, even if done, and has no effect twice", async () => {
  const path = await reported();
  chat.answer({ create: () => ({}) });
  group.answer({ create: () => ({}) });
  const before = [chat.to("create").length, group.to("create").length];
  const retry = () => alice.call("POST", `${path}/retry`, { step: conversationStep });
  expect(statesOf((await retry()).body.steps)).toMatchObject({
    [conversationStep]: "Done",
    [groupStep]: "Failed",
  });
  const sent = chat.to("send").length;
  expect(statesOf((await retry()).body.steps)).toMatchObject({ [conversationStep]: "Done" });
  expect([chat.to("create").length, group.to("create").length]).toEqual([before[0]! + 1, before[1]!]);
  // It ran, with the same keys as before.
  const keys = chat
    .to("send")
    .slice(sent - 1)
    .map(({ key }) => key);
  expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
  const all = await alice.call("POST", `${path}/retry`, {});
  expect(statesOf(all.body.steps)).toMatchObject({ [groupStep]: "Done" });
  expect(chat.to("send")).toHaveLength(sent + 1);
});

test("a running step is left alone", async () => {
  const path = await reported();
  const id = Number(path.split("/").at(-1));
  const isStep = and(eq(flowStep.incidentId, id), eq(flowStep.step, conversationStep));
  const leaseUntil = new Date(Date.now() + 60_000);
  await server.db.update(flowStep).set({ state: "Running", leaseUntil, dueAt: leaseUntil }).where(isStep);
  const calls = chat.calls.length;
  await alice.call("POST", `${path}/retry`, {});
  await alice.call("POST", `${path}/retry`, { step: conversationStep });
  expect(chat.calls).toHaveLength(calls);
  const [running] = await server.db.select().from(flowStep).where(isStep);
  expect([running?.leaseUntil, running?.dueAt]).toEqual([leaseUntil, leaseUntil]);
});

test("with an Idempotency-Key it runs once; the answer shows the current steps", async () => {
  const path = await reported();
  const retry = () => alice.call("POST", `${path}/retry`, {}, { "idempotency-key": "again" });
  const calls = () => chat.to("create").length;
  const before = calls();
  expect((await retry()).http).toBe(200);
  expect(await retry()).toMatchObject({ http: 200, body: { steps: [{}, { state: "Failed" }, {}] } });
  expect(calls()).toBe(before + 1);
});

test("a step that the incident does not have is 404", async () => {
  const path = await reported();
  for (const step of ["reported:documents", "", "x'; drop table flow_step; --"]) {
    expect(await alice.call("POST", `${path}/retry`, { step })).toMatchObject({
      http: 404,
      body: { detail: "This incident has no such step" },
    });
  }
});
