import { afterAll, beforeAll, expect, test } from "bun:test";
import { incidentType, service } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { fakeConversation, fakeParticipant } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { until } from "../../../tests/support/process/until.ts";
import { runFlow } from "./run.ts";

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};
const step = "reported:conversation:fake-conversation";

test("a step keeps its lease while it waits for two others that take the maximum time", async () => {
  const { db, clock } = flow;
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const [desk] = await db
    .insert(service)
    .values({ name: "Desk", pluginSlug: "fake-participant", ...stamps })
    .returning({ id: service.id });
  const [type] = await db
    .insert(incidentType)
    .values({ name: "Staffed", commanderServiceId: desk!.id, ...stamps })
    .returning({ id: incidentType.id });
  const [nobody, noOne] = [Promise.withResolvers<[]>(), Promise.withResolvers<null>()];
  using people = fakeParticipant({ resolve: () => nobody.promise, onCall: () => noOne.promise });
  using chat = fakeConversation({ create: () => ({}), add: nothing, send: nothing });
  const plugins = pluginsOf(people, chat);
  const id = await flow.report(plugins, { incidentTypeId: type!.id });
  const run = runFlow(flow.context(plugins), id);
  const both = () => people.to("resolve").length + chat.to("create").length === 2;
  await until("both plugins to be called", both);
  clock.advance(31);
  nobody.resolve([]);
  await until("the on-call plugin to be called", () => people.to("onCall").length === 1);
  const renewed = async () => (await flow.step(id, step)).leaseUntil! > after(clock.now(), 31);
  await until("the lease of the waiting step to be renewed", renewed);
  clock.advance(31);
  await runFlow(flow.another(plugins), id);
  expect(await flow.step(id, step)).toMatchObject({ state: "Running", attempts: 1 });
  noOne.resolve(null);
  await run;
  expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 1 });
  expect(["create", "add", "send"].map((method) => chat.to(method as "create").length)).toEqual([1, 1, 1]);
});
