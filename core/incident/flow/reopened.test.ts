import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { conversation, delivery, incident, participant } from "../../../drizzle/schema/index.ts";
import { fakeConversation, fakeReopening } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { attemptAll, endDeliveries } from "../../../tests/support/domain/delivery.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import type { Plugins } from "../../plugin/choose.ts";
import { noteOnTimeline } from "../event/note.ts";
import { updateIncident } from "../lifecycle/update.ts";
import { runFlow } from "../steps/run.ts";

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};
const made = { create: () => ({}), send: nothing, add: nothing };
const step = "reopened:conversation:fake-conversation";

let id: number;
let plugins: Plugins;
async function report(...fakes: Parameters<typeof pluginsOf>) {
  plugins = pluginsOf(...fakes);
  id = await flow.report(plugins);
  await run();
}
const run = () => runFlow(flow.context(plugins), id);
const row = async () => (await flow.db.select().from(incident).where(eq(incident.id, id)))[0]!;
const place = async () =>
  (await flow.db.select().from(conversation).where(eq(conversation.incidentId, id)))[0]!;
/** As through the API. @returns whether steps follow */
async function become(status: "Active" | "Stable" | "Closed"): Promise<boolean> {
  const { follows } = await updateIncident(flow.context(plugins), rita, { ...(await row()), status });
  // It is archived once everybody has been told that it was closed.
  await endDeliveries(flow.db, flow.clock.now());
  return follows;
}
const methodsOf = (fake: { calls: readonly { method: string }[] }) => fake.calls.map(({ method }) => method);
beforeEach(() => void flow.clock.advance(60));

test("a conversation is reopened with its incident each time, for the current participants", async () => {
  using fake = fakeReopening({ ...made, archive: nothing, reopen: nothing });
  await report(fake);
  for (let time = 0; time < 2; time += 1) {
    flow.clock.advance(60);
    expect(await become("Closed")).toBe(true);
    await run();
    expect((await place()).archivedAt).toEqual(flow.clock.now());
    expect(await become("Active")).toBe(true);
    await run();
    expect((await place()).archivedAt).toBeNull();
  }
  expect(methodsOf(fake)).toEqual([
    "create",
    "add",
    "send",
    "archive",
    "reopen",
    "add",
    "archive",
    "reopen",
    "add",
  ]);
  // A plugin performs an operation once for each key.
  const keys = [...fake.to("archive"), ...fake.to("reopen"), ...fake.to("add")].map(({ key }) => key);
  expect(new Set(keys).size).toBe(7);
  expect(
    fake
      .to("add")
      .at(-1)!
      .people.map(({ email }) => email),
  ).toEqual(["rita@example.com"]);
});

test("a note that is written while a conversation is being reopened is sent once it is open", async () => {
  using fake = fakeReopening({ ...made, archive: nothing, reopen: nothing });
  await report(fake);
  await become("Closed");
  await run();
  await updateIncident(flow.context(plugins), rita, { ...(await row()), status: "Active" });
  await noteOnTimeline(flow.context(plugins), rita, { incidentId: id, description: "seen" });
  const queued = async () =>
    (await flow.db.select().from(delivery).where(eq(delivery.incidentId, id)))
      .filter(({ state }) => state === "Queued")
      .map(({ task }) => task)
      .sort();
  expect(await queued()).toEqual(["incident-note"]);
  await run();
  expect(await queued()).toEqual(["incident-note", "incident-reopened"]);
  // After another closing, nothing will open it.
  await become("Closed");
  await run();
  await updateIncident(flow.context(plugins), rita, { ...(await row()), status: "Active" });
  await updateIncident(flow.context(plugins), rita, { ...(await row()), status: "Closed" });
  await noteOnTimeline(flow.context(plugins), rita, { incidentId: id, description: "closed again" });
  expect(await queued()).toEqual([]);
});

test.each([
  ["opened", fakeConversation, "create"],
  ["reopened", fakeReopening, "reopen"],
] as const)(
  "messages become due when the conversation for which they wait is %s",
  async (_, fakeOf, method) => {
    using fake = fakeOf({ ...made, ...(method === "reopen" && { archive: nothing }) });
    fake.answer({ [method]: [() => Promise.reject(new Error("hunter2")), made.create] });
    await report(fake);
    if (method === "reopen") {
      await become("Closed");
      await run();
      await become("Active");
      await run();
    }
    await noteOnTimeline(flow.context(plugins), rita, { incidentId: id, description: "seen" });
    const note = async () => {
      const queued = and(eq(delivery.incidentId, id), eq(delivery.task, "incident-note"));
      return (await flow.db.select().from(delivery).where(queued))[0]!;
    };
    for (const _ of [1, 2, 3])
      expect(await attemptAll(flow.context(plugins), eq(delivery.incidentId, id))).toEqual(["again"]);
    flow.clock.advance(30);
    expect((await note()).dueAt! > flow.clock.now()).toBe(true);
    await run();
    expect(await note()).toMatchObject({ dueAt: flow.clock.now(), attempts: 0 });
  },
);

test("a note that is written while a conversation is being archived is not sent to it", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const archive = () => {
    asked.resolve();
    return answer.promise;
  };
  using fake = fakeReopening({ ...made, archive });
  await report(fake);
  await become("Closed");
  const running = run();
  await asked.promise;
  await noteOnTimeline(flow.context(plugins), rita, { incidentId: id, description: "seen" });
  answer.resolve();
  await running;
  const tasks = await flow.db
    .select({ task: delivery.task })
    .from(delivery)
    .where(eq(delivery.incidentId, id));
  expect(tasks).toEqual([{ task: "incident-change" }]);
});

test("an incident's own channel is open at once, without a plugin call", async () => {
  using fake = fakeReopening({ ...made, archive: nothing }, { slug: "channel" });
  await report(fake);
  await become("Closed");
  await run();
  expect((await place()).archivedAt).not.toBeNull();
  expect(await become("Active")).toBe(false);
  expect((await place()).archivedAt).toBeNull();
});

test("a conversation that was not archived is left alone", async () => {
  using fake = fakeReopening(made);
  await report(fake);
  await become("Stable");
  expect(await become("Active")).toBe(false);
  await run();
  expect(methodsOf(fake)).toEqual(["create", "add", "send"]);
});

test("a conversation stays archived if its plugin cannot reopen it, and the timeline says so", async () => {
  using fake = fakeConversation({ ...made, archive: nothing });
  await report(fake);
  await become("Closed");
  await run();
  await become("Active");
  await run();
  expect((await place()).archivedAt).not.toBeNull();
  expect(await flow.step(id, step)).toMatchObject({ state: "Done" });
  expect((await flow.told(id, "step.done")).at(-1)).toEndWith(
    "Conversation stays archived: fake-conversation cannot reopen it",
  );
});

test("a conversation of a plugin that is no longer enabled stays as it is", async () => {
  using fake = fakeReopening({ ...made, archive: nothing });
  await report(fake);
  await become("Closed");
  await run();
  plugins = pluginsOf();
  expect(await become("Active")).toBe(false);
  expect(Object.keys(await flow.states(id))).not.toContain(step);
});

test("a failing plugin is retried, and the conversation stays archived meanwhile", async () => {
  using fake = fakeReopening({ ...made, archive: nothing });
  fake.answer({ reopen: [() => Promise.reject(new Error("hunter2")), nothing] });
  await report(fake);
  await become("Closed");
  await run();
  await become("Active");
  await run();
  expect((await place()).archivedAt).not.toBeNull();
  flow.clock.advance(30);
  await run();
  expect((await place()).archivedAt).toBeNull();
  expect(new Set(fake.to("reopen").map(({ key }) => key)).size).toBe(1);
});

test("a person who could not be added is added at the next attempt", async () => {
  using fake = fakeReopening({ ...made, archive: nothing, reopen: nothing });
  await report(fake);
  await become("Closed");
  await run();
  fake.answer({ add: [() => Promise.reject(new Error("hunter2")), nothing] });
  await become("Active");
  await run();
  const following = "joined:conversation:fake-conversation";
  expect(await flow.step(id, following)).toMatchObject({ state: "Failed" });
  flow.clock.advance(30);
  await run();
  expect(methodsOf(fake).slice(3)).toEqual(["archive", "reopen", "add", "add"]);
  expect(fake.to("add").at(-1)!.key).toBe(fake.to("add").at(-2)!.key);
  expect(await flow.step(id, following)).toMatchObject({ state: "Done" });
});

test("a conversation is reopened even if its archiving was never confirmed", async () => {
  using fake = fakeReopening({ ...made, reopen: nothing });
  fake.answer({ archive: [() => Promise.reject(new Error("hunter2"))] });
  await report(fake);
  await become("Closed");
  await run();
  expect((await place()).archivedAt).toBeNull();
  await become("Active");
  await run();
  expect(methodsOf(fake).slice(3)).toEqual(["archive", "reopen", "add"]);
  expect((await place()).archivedAt).toBeNull();
  // And it is not archived afterwards.
  flow.clock.advance(30);
  await run();
  expect(fake.to("archive")).toHaveLength(1);
});

test("a conversation follows an incident whose status changes during the plugin call", async () => {
  const turning = (status: "Active" | "Closed") => async () => void (await become(status));
  using fake = fakeReopening(made);
  await report(fake);
  fake.answer({
    archive: [turning("Active"), nothing],
    reopen: [turning("Closed"), turning("Active"), nothing],
  });
  await become("Closed");
  await run();
  // It is archived, reopened meanwhile, closed while being reopened, and so on, until it matches its incident.
  expect((await place()).archivedAt === null).toBe((await row()).status === "Active");
  expect(
    methodsOf(fake)
      .filter((method) => method !== "add")
      .slice(2),
  ).toEqual(["archive", "reopen", "archive"]);
});

test("a conversation stays archived if its incident is closed again before it is reopened", async () => {
  using fake = fakeReopening({ ...made, archive: nothing });
  await report(fake);
  await become("Closed");
  await run();
  await become("Active");
  await become("Closed");
  await run();
  expect(methodsOf(fake)).toEqual(["create", "add", "send", "archive"]);
  expect((await place()).archivedAt).not.toBeNull();
});

test("a person who has left is not added again", async () => {
  using fake = fakeReopening({ ...made, archive: nothing, reopen: nothing });
  await report(fake);
  await become("Closed");
  await run();
  await become("Active");
  const leftAt = flow.clock.now();
  await flow.db.update(participant).set({ leftAt }).where(eq(participant.incidentId, id));
  await run();
  expect(fake.to("add")).toHaveLength(1);
});
