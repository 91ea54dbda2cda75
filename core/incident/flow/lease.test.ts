import { afterAll, beforeAll, expect, test } from "bun:test";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { LeaseLost } from "../../outbox/work.ts";
import { type Claim, claimDue, fail, finish, renew, writeAs } from "./lease.ts";
import { planSteps } from "./plan.ts";

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const plugins = pluginsOf();
const step = "reported:commander";

test("of many at once, one claims a step", async () => {
  const processes = [1, 2, 3, 4].map(() => flow.another(plugins));
  for (let i = 0; i < 5; i += 1) {
    const id = await flow.report(plugins);
    const claims = await Promise.all([...processes, ...processes].map((one) => claimDue(one, id)));
    expect(claims.flat()).toMatchObject([{ incidentId: id, step, attempts: 1, error: null }]);
  }
});

test("what somebody is just writing is not waited for", async () => {
  const id = await flow.report(plugins);
  const other = flow.another(plugins);
  await flow.db.transaction(async (tx) => {
    await planSteps(tx, { incidentId: id, at: flow.clock.now() }, [step]);
    expect(await claimDue(other, id)).toEqual([]);
  });
  expect(await claimDue(other, id)).toHaveLength(1);
});

test("what goes on beside each other under one claim writes in turn and does not lose it", async () => {
  const id = await flow.report(plugins);
  // Each lease is another one, as with a clock that does not stand still.
  const now = () => {
    flow.clock.advance(6);
    return flow.clock.now();
  };
  const context = { ...flow.context(plugins), clock: { now } };
  const [claim] = await claimDue(context, id);
  const both = Array.from({ length: 10 }, () => [
    renew(context, claim!),
    writeAs(context, claim!, () => Promise.resolve()),
  ]);
  await Promise.all(both.flat());
  const { leaseUntil, dueAt } = await flow.step(id, step);
  expect([leaseUntil, dueAt]).toEqual([claim!.leaseUntil, claim!.leaseUntil]);
});

test("a longer lease forgets nothing: what was set due meanwhile is due afterwards", async () => {
  const context = flow.context(plugins);
  const ends = [
    (claim: Claim) => finish(context, claim, "words"),
    (claim: Claim) => fail(context, claim, { reason: "words" }),
  ];
  for (const end of ends) {
    const id = await flow.report(plugins);
    const [claim] = await claimDue(context, id);
    await flow.again(id, step);
    const dueAt = flow.clock.now();
    flow.clock.advance(10);
    await renew(context, claim!);
    await end(claim!);
    expect((await flow.step(id, step)).dueAt).toEqual(dueAt);
    expect(await claimDue(context, id)).toHaveLength(1);
  }
});

test("who has lost a step can do nothing of it any more", async () => {
  const context = flow.context(plugins);
  const id = await flow.report(plugins);
  const [lost] = await claimDue(context, id);
  flow.clock.advance(60);
  const [ours] = await claimDue(context, id);
  let written = false;
  const attempts = [
    renew(context, lost!),
    finish(context, lost!, "done"),
    fail(context, lost!, { reason: "failed" }),
    writeAs(context, lost!, async () => {
      written = true;
    }),
  ];
  for (const result of await Promise.allSettled(attempts)) {
    expect(result).toMatchObject({ status: "rejected", reason: expect.any(LeaseLost) });
  }
  expect(written).toBe(false);
  expect(await flow.told(id, "step.done", "step.failed")).toEqual([]);
  await finish(context, ours!, "done");
  expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 2, error: null, dueAt: null });
});

test("a group is not brought up to date while it is made, nor made while it is brought up to date", async () => {
  const id = await flow.report(plugins);
  const context = flow.context(plugins);
  const [make, follow] = ["reported:group:list", "joined:group:list"];
  const claimed = async () => (await claimDue(context, id)).filter((one) => one.step.includes("group"));
  await flow.again(id, make);
  await flow.again(id, follow);
  const [making, ...beside] = await claimed();
  expect([making?.step, beside]).toEqual([make, []]);
  expect(await claimed()).toEqual([]);
  await finish(context, making!, undefined);
  const [following] = await claimed();
  expect(following?.step).toBe(follow);
  await flow.again(id, make);
  expect(await claimed()).toEqual([]);
  await finish(context, following!, undefined);
  expect((await claimed()).map((one) => one.step)).toEqual([make]);
  // Its process has died: it is made first, by whoever comes.
  await flow.again(id, follow);
  flow.clock.advance(3600);
  expect((await claimed()).map((one) => one.step)).toEqual([make]);
});
