import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { delivery, incident } from "../../../drizzle/schema/index.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeChat, fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { attemptAll } from "../../../tests/support/domain/delivery.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { updateIncident } from "../lifecycle/update.ts";
import { writeReport } from "../report/write.ts";
import { runFlow } from "../steps/run.ts";

// An Open incident, whose conversations may be public, becomes Restricted.

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());
beforeEach(async () => void (await flow.db.delete(delivery)));

const nothing = () => {};
const made = { create: () => ({ externalId: crypto.randomUUID() }), send: nothing, add: nothing };
const step = "restricted:conversation:fake-conversation";

async function report(fake: Fake<"conversation">, visibility: "Open" | "Restricted" = "Open") {
  const context = flow.context(pluginsOf(fake));
  const id = await flow.report(context.plugins, { visibility });
  const run = () => runFlow(context, id);
  const become = async (visibility: "Open" | "Restricted") => {
    const [row] = await flow.db.select().from(incident).where(eq(incident.id, id));
    return (await updateIncident(context, rita, { ...row!, visibility })).follows;
  };
  const deliveries = () => flow.db.select().from(delivery).where(eq(delivery.incidentId, id));
  await run();
  return { id, context, run, become, deliveries };
}

test("its conversations are restricted to the participants, each time with a new key", async () => {
  using fake = fakeChat({ ...made, restrict: nothing });
  const { run, become } = await report(fake);
  for (let time = 0; time < 2; time += 1) {
    expect(await become("Restricted")).toBe(true);
    await run();
    expect(await become("Open")).toBe(false);
  }
  const calls = fake.to("restrict");
  expect(calls).toMatchObject(
    [1, 2].map(() => ({
      people: [{ email: "rita@example.com" }],
      conversation: { incident: { visibility: "Restricted" } },
    })),
  );
  expect(new Set(calls.map(({ key }) => key)).size).toBe(2);
});

test("a failing plugin is retried with the same key, and nothing is sent there until it succeeds", async () => {
  using fake = fakeChat(made);
  fake.answer({ restrict: [() => Promise.reject(new Error("hunter2")), nothing] });
  const { id, context, run, become, deliveries } = await report(fake);
  const before = fake.to("send").length;
  await become("Restricted");
  expect(await attemptAll(context)).toEqual(["again"]);
  await run();
  expect(await flow.step(id, step)).toMatchObject({ state: "Failed" });
  flow.clock.advance(30);
  expect(await attemptAll(context)).toEqual(["again"]);
  const waits = async () =>
    (await deliveries()).map(({ dueAt, attempts }) => [dueAt! > flow.clock.now(), attempts]);
  expect(await waits()).toEqual([[true, 2]]);
  await run();
  expect(await waits()).toEqual([[false, 0]]);
  expect(new Set(fake.to("restrict").map(({ key }) => key)).size).toBe(1);
  expect(fake.to("send").length).toBe(before);
  expect(await attemptAll(context)).toEqual(["done"]);
  expect(fake.to("send").at(-1)!.message.subject).toEndWith(": Restricted");
});

test("nothing more is sent to a plugin that cannot restrict, and the timeline says so", async () => {
  using fake = fakeConversation(made);
  const { id, context, run, become, deliveries } = await report(fake);
  const before = fake.to("send").length;
  await writeReport(context, rita, { incidentId: id, conditions: "Full", actions: "", needs: "" });
  await become("Restricted");
  await run();
  expect(await flow.told(id, "step.failed")).toEqual([
    "step.failed fake-conversation: fake-conversation cannot restrict a conversation: nothing more is sent to it while the incident is Restricted",
  ]);
  expect(await attemptAll(context)).toEqual(["dead"]);
  const [row] = await flow.db.select().from(incident).where(eq(incident.id, id));
  await updateIncident(context, rita, { ...row!, status: "Stable" });
  expect(await deliveries()).toHaveLength(1);
  await become("Open");
  expect(await attemptAll(context)).toEqual(["done"]);
  expect(fake.to("send").length).toBe(before + 1);
});

test("a conversation that was Restricted from the start is left to the plugin that creates it", async () => {
  using fake = fakeChat(made);
  const { id, become } = await report(fake, "Restricted");
  await become("Restricted");
  expect(Object.keys(await flow.states(id))).not.toContain(step);
  expect(fake.to("create")[0]!.incident.visibility).toBe("Restricted");
});

test("a conversation created meanwhile is restricted before anybody is welcomed", async () => {
  const created = Promise.withResolvers<{ externalId: string }>();
  using fake = fakeChat({ ...made, create: () => created.promise, restrict: nothing });
  const context = flow.context(pluginsOf(fake));
  const id = await flow.report(context.plugins);
  const running = runFlow(context, id);
  while (fake.to("create").length === 0) await Bun.sleep(5);
  await flow.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, id));
  created.resolve({ externalId: crypto.randomUUID() });
  await running;
  flow.clock.advance(30);
  await runFlow(context, id);
  expect(fake.calls.map(({ method }) => method)).toEqual(["create", "add", "restrict", "add", "send"]);
});
