import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { conversation, event, flowStep, incident } from "../../../drizzle/schema/index.ts";
import { Background } from "../../../platform/background.ts";
import {
  fakeConversation,
  fakeDocument,
  fakeParticipant,
  fakeParticipantGroup,
} from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { until } from "../../../tests/support/process/until.ts";
import { reportIncident } from "../lifecycle/report.ts";
import { onDatabaseTime, runDueFlows, runFlow, runFlowWithin } from "./run.ts";

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};
const hanging = () => new Promise<never>(() => {});
const step = "reported:conversation:fake-conversation";
const talking = { create: () => ({}), add: nothing, send: nothing };

/** A plugin method that was called and does not answer yet. */
function held<T>() {
  const called = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<T>();
  return {
    called: called.promise,
    answer: answer.resolve,
    method: () => {
      called.resolve();
      return answer.promise;
    },
  };
}

describe("concurrent processes", () => {
  test("call each plugin once, and run each step once", async () => {
    using people = fakeParticipant({
      resolve: () => [{ individual: { email: "ada@example.com" }, reasons: [] }],
    });
    using documents = fakeDocument({ create: ({ document: { id } }) => ({ resourceId: `r${id}` }) });
    using chat = fakeConversation(talking);
    using group = fakeParticipantGroup({ create: () => ({}), add: nothing });
    const plugins = pluginsOf(people, documents, chat, group);
    const processes = [1, 2, 3, 4].map(() => flow.another(plugins));
    const ids = await Promise.all([1, 2, 3, 4, 5].map(() => flow.report(plugins)));
    await Promise.all(processes.flatMap((one) => [runDueFlows(one), ...ids.map((id) => runFlow(one, id))]));
    for (const id of ids) {
      expect(new Set(Object.values(await flow.states(id)))).toEqual(new Set(["Done"]));
      expect(await flow.told(id, "step.done", "step.failed")).toHaveLength(
        Object.keys(await flow.states(id)).length,
      );
    }
    expect(
      [people.to("resolve"), documents.to("create"), chat.to("create")].map((calls) => calls.length),
    ).toEqual([5, 5, 5]);
    expect([chat.to("send").length, group.to("create").length]).toEqual([5, 5]);
  });

  test("take a step over when its lease ends, and the first process can no longer write", async () => {
    const slow = held<{ externalId: string }>();
    using dead = fakeConversation({ create: slow.method });
    const working = held<{ externalId: string }>();
    using alive = fakeConversation({ ...talking, create: working.method });
    const id = await flow.report(pluginsOf(dead));
    const first = runFlow(flow.context(pluginsOf(dead)), id);
    await slow.called;
    const other = flow.another(pluginsOf(alive));
    flow.clock.advance(59);
    await runFlow(other, id);
    expect(alive.calls).toEqual([]);
    flow.clock.advance(1);
    const second = runDueFlows(other);
    await working.called;
    slow.answer({ externalId: "dead" });
    await first;
    expect(await flow.step(id, step)).toMatchObject({ state: "Running", attempts: 2 });
    working.answer({ externalId: "alive" });
    await second;
    expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 2 });
    const rows = await flow.db.select().from(conversation).where(eq(conversation.incidentId, id));
    expect(rows).toMatchObject([{ externalId: "alive" }]);
    expect(await flow.told(id, "step.failed")).toEqual([]);
    // The same operation, so a plugin that is called twice performs it once.
    expect(alive.to("create")[0]!.key).toBe(dead.to("create")[0]!.key);
  });
});

test("after a crash between the plugin's answer and our record, a retry repeats nothing", async () => {
  const made = new Map<string, string>();
  const create = ({ key }: { key: string }) => {
    if (!made.has(key)) made.set(key, crypto.randomUUID());
    return { externalId: made.get(key)! };
  };
  using chat = fakeConversation({ ...talking, create });
  const plugins = pluginsOf(chat);
  const id = await flow.report(plugins);
  const context = flow.context(plugins);
  await runFlow(context, id);
  // The state after a crash: the plugin has done everything, and we know only of the claim.
  await flow.db.delete(conversation).where(eq(conversation.incidentId, id));
  const leaseUntil = flow.clock.now();
  await flow.db
    .update(flowStep)
    .set({ state: "Running", leaseUntil, dueAt: leaseUntil, finishedAt: null })
    .where(and(eq(flowStep.incidentId, id), eq(flowStep.step, step)));
  await runDueFlows(context);
  expect(await flow.db.select().from(conversation).where(eq(conversation.incidentId, id))).toHaveLength(1);
  expect(made.size).toBe(1);
  const twice = (keys: string[]) => [keys.length, new Set(keys).size];
  for (const method of ["create", "add", "send"] as const)
    expect(twice(chat.to(method).map(({ key }) => key))).toEqual([2, 1]);
});

describe("a plugin that hangs", () => {
  test("delays neither the incident's other steps nor other incidents", async () => {
    const release = held<void>();
    using chat = fakeConversation({
      create: () => release.method().then(() => ({})),
      add: nothing,
      send: nothing,
    });
    using documents = fakeDocument({ create: ({ document: { id } }) => ({ resourceId: `h${id}` }) });
    const hangs = pluginsOf(chat, documents);
    using good = fakeDocument({ create: ({ document: { id } }) => ({ resourceId: `g${id}` }) });
    const stuck = await flow.report(hangs);
    // It comes first.
    flow.clock.advance(1);
    const others: number[] = [];
    for (let i = 0; i < 9; i += 1) others.push(await flow.report(pluginsOf(good)));
    const run = runDueFlows(flow.context(hangs));
    const done = async () => {
      const states = await Promise.all([stuck, ...others].map((id) => flow.states(id)));
      return states.every((state) => state["reported:documents"] === "Done");
    };
    while (!(await done())) await Bun.sleep(5);
    expect(await flow.states(stuck)).toMatchObject({ [step]: "Running", "reported:commander": "Done" });
    release.answer();
    await run;
    expect(await flow.states(stuck)).toMatchObject({ [step]: "Done" });
  });

  test("fails when its time is up, and the same reason is recorded once", async () => {
    using chat = fakeConversation({ create: hanging }, { timeoutMilliseconds: 20 });
    const plugins = pluginsOf(chat);
    const context = flow.context(plugins);
    const id = await flow.report(plugins);
    for (const [attempts, seconds] of [30, 60, 120, 240, 480, 960, 1920, 3600, 3600].entries()) {
      await runFlow(context, id);
      const { state, dueAt } = await flow.step(id, step);
      expect([state, dueAt?.getTime()]).toEqual(["Failed", flow.clock.now().getTime() + seconds * 1000]);
      flow.clock.advance(seconds - 1);
      await runDueFlows(context);
      expect(chat.calls).toHaveLength(attempts + 1);
      flow.clock.advance(1);
    }
    await runDueFlows(context);
    expect(await flow.step(id, step)).toMatchObject({ state: "Failed", attempts: 10, dueAt: null });
    const reason = "fake-conversation did not answer within 0.02 s";
    expect(await flow.told(id, "step.failed")).toEqual([`step.failed fake-conversation: ${reason}`]);
    // Even if a person asked for it.
    await flow.again(id, step);
    await runFlow(context, id);
    expect(await flow.told(id, "step.failed")).toHaveLength(1);
    chat.answer({ create: () => Promise.reject(Object.assign(new Error(), { detail: "full" })) });
    await flow.again(id, step);
    await runFlow(context, id);
    chat.answer(talking);
    await flow.again(id, step);
    await runFlow(context, id);
    const told = await flow.told(id, "step.failed", "step.done");
    expect(told.filter((line) => line.includes("fake-conversation"))).toEqual([
      `step.failed fake-conversation: ${reason}`,
      "step.failed fake-conversation: fake-conversation failed: full",
      "step.done fake-conversation: Conversation opened",
    ]);
  });

  test("delays a request only briefly, and continues in the background", async () => {
    const slow = held<object>();
    using chat = fakeConversation({ ...talking, create: slow.method });
    const plugins = pluginsOf(chat);
    const background = new Background();
    const id = await flow.report(plugins);
    await runFlowWithin({ ...flow.context(plugins), background }, id, 20);
    await slow.called;
    expect(await flow.states(id)).toMatchObject({ [step]: "Running" });
    slow.answer({});
    while ((await flow.states(id))[step] !== "Done") await Bun.sleep(5);
    await background.stop();
  });
});

test("servers whose clocks are twenty minutes apart call a plugin once, and run each other's steps", async () => {
  const slow = held<object>();
  using chat = fakeConversation({ ...talking, create: slow.method });
  const plugins = pluginsOf(chat);
  const apart = (minutes: number) => ({
    ...flow.another(plugins),
    clock: { now: () => new Date(Date.now() + minutes * 60_000) },
  });
  const [behind, ahead] = [apart(-10), apart(10)];
  const { typeId: incidentTypeId, priorityId: incidentPriorityId } = flow;
  const wanted = { title: "Disk full", description: "", incidentTypeId, incidentPriorityId };
  const { id } = await reportIncident(ahead, rita, wanted);
  const running = runFlowWithin(behind, id, 60_000);
  await slow.called;
  await onDatabaseTime(ahead, runDueFlows);
  slow.answer({});
  await running;
  expect(chat.to("create")).toHaveLength(1);
  expect(await flow.states(id)).toMatchObject({ [step]: "Done" });
});

test("in the background, steps of sixteen incidents run at once, and others wait", async () => {
  const slow = held<object>();
  using chat = fakeConversation({ ...talking, create: slow.method });
  const plugins = pluginsOf(chat);
  const background = new Background();
  const context = { ...flow.context(plugins), background };
  const ids: number[] = [];
  for (let nth = 0; nth < 17; nth += 1) ids.push(await flow.report(plugins));
  const [last] = ids.splice(16);
  await Promise.all(ids.map((id) => runFlowWithin(context, id, 0)));
  await until("sixteen to be asked", () => chat.to("create").length === 16);
  // An answer does not wait for the steps of others.
  await runFlowWithin(context, last!, 3_600_000);
  expect(await flow.states(last!)).toEqual({ "reported:commander": "Pending", [step]: "Pending" });
  slow.answer({});
  await until("all to be done", async () => (await flow.states(last!))[step] === "Done");
  await background.stop();
});

test("stopping cancels calls and gives steps back as if they had not begun", async () => {
  const stuck = held<never>();
  using chat = fakeConversation({ create: stuck.method }, { timeoutMilliseconds: 60_000 });
  const plugins = pluginsOf(chat);
  const background = new Background();
  const context = { ...flow.context(plugins), background };
  const id = await flow.report(plugins);
  await runFlowWithin(context, id, 20);
  await stuck.called;
  await background.stop();
  expect(chat.to("create")[0]!.signal.aborted).toBe(true);
  const given = await flow.step(id, step);
  expect(given).toMatchObject({ state: "Pending", attempts: 0, leaseUntil: null });
  expect(given.dueAt!.getTime()).toBeLessThan(Date.now() + 1000);
  expect(await flow.told(id, "step.failed")).toEqual([]);
  // Nothing else is started.
  await onDatabaseTime(context, runDueFlows);
  expect(chat.calls).toHaveLength(1);
});

test("a step that is made due while it runs runs once more", async () => {
  const slow = held<object>();
  using chat = fakeConversation({ create: slow.method, add: nothing, send: nothing });
  const plugins = pluginsOf(chat);
  const id = await flow.report(plugins);
  const run = runFlow(flow.context(plugins), id);
  await slow.called;
  await flow.again(id, step);
  // It is due, but still ours.
  await runFlow(flow.another(plugins), id);
  expect(await flow.states(id)).toMatchObject({ [step]: "Running" });
  slow.answer({});
  await run;
  expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 1 });
  expect([chat.to("create").length, chat.to("send").length]).toEqual([1, 2]);
});

test("deleting an incident deletes its running steps without an error", async () => {
  const slow = held<object>();
  using chat = fakeConversation({ create: slow.method });
  const plugins = pluginsOf(chat);
  const id = await flow.report(plugins);
  const run = runFlow(flow.context(plugins), id);
  await slow.called;
  await flow.db.delete(incident).where(eq(incident.id, id));
  slow.answer({});
  flow.logged.length = 0;
  await run;
  expect(flow.logged).toEqual([]);
  expect(await flow.db.$count(event, eq(event.incidentId, id))).toBe(0);
});

test("a step that this release does not know fails, and blocks nothing", async () => {
  const id = await flow.report(pluginsOf());
  await flow.again(id, "reported:fireworks");
  await runFlow(flow.context(pluginsOf()), id);
  expect(await flow.step(id, "reported:fireworks")).toMatchObject({
    state: "Failed",
    error: "This release of svc does not know this step",
  });
});

test("an internal error is logged, and not shown", async () => {
  using chat = fakeConversation({ create: () => ({ externalId: "fault" }) });
  const plugins = pluginsOf(chat);
  const id = await flow.report(plugins);
  await flow.db.execute("alter table conversation add constraint never check (external_id <> 'fault')");
  await runFlow(flow.context(plugins), id);
  await flow.db.execute("alter table conversation drop constraint never");
  expect(await flow.step(id, step)).toMatchObject({
    state: "Failed",
    error: "Internal error: see svc's log",
  });
  expect(flow.logged.join()).toContain("a step failed because of an internal error");
});

test("the caller gets no error if the database is away", async () => {
  const context = flow.another(pluginsOf());
  const id = await flow.report(pluginsOf());
  await (context.db as unknown as { $client: { end(): Promise<void> } }).$client.end();
  await runFlow(context, id);
  await runDueFlows(context);
  expect(await flow.states(id)).toEqual({ "reported:commander": "Pending" });
});
