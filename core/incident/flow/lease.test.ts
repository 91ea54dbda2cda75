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

test("one of many concurrent processes claims a step", async () => {
  const processes = [1, 2, 3, 4].map(() => flow.another(plugins));
  for (let i = 0; i < 5; i += 1) {
    const id = await flow.report(plugins);
    const claims = await Promise.all([...processes, ...processes].map((one) => claimDue(one, id)));
    expect(claims.flat()).toMatchObject([{ incidentId: id, step, attempts: 1, error: null }]);
  }
});

test("a step that is being written is skipped", async () => {
  const id = await flow.report(plugins);
  const other = flow.another(plugins);
  await flow.db.transaction(async (tx) => {
    await planSteps(tx, { incidentId: id, at: flow.clock.now() }, [step]);
    expect(await claimDue(other, id)).toEqual([]);
  });
  expect(await claimDue(other, id)).toHaveLength(1);
});

test("concurrent writes under one claim take turns and keep the lease", async () => {
  const id = await flow.report(plugins);
  // Each lease differs, as with a real clock.
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

test("a step made due during an attempt is due after it, even if its lease was extended", async () => {
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

test("a process that has lost a step can no longer change it", async () => {
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

test("a group is never created and updated at the same time", async () => {
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
  // Its process has died: the next process creates it first.
  await flow.again(id, follow);
  flow.clock.advance(3600);
  expect((await claimed()).map((one) => one.step)).toEqual([make]);
});
