import { afterAll, beforeAll, expect, test } from "bun:test";
import { after } from "../../platform/clock.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { at, type Outbox, startOutbox } from "../../tests/support/domain/delivery.ts";
import { enqueuedSince } from "./enqueued.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

test("finds messages to a person by the exact prefix of their key", async () => {
  const { db, clock, ids } = outbox;
  const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));
  const message = { subject: "INC-1: report", text: "How does it stand?" };
  const keyed = (what: string, individualId: number) => ({
    key: { task: "t", what, whom: `i/${individualId}` },
    incidentId: ids.incidentId,
    individualId,
    message,
  });
  const { alice, bob } = ids;
  await outbox.deliver(plugins, keyed("a/b-1", alice));
  clock.advance(1);
  await outbox.deliver(plugins, keyed("a/b", bob), keyed("a", alice), keyed("a-b", alice));
  const enqueued = (since: Date, people: number[]) =>
    db.transaction((tx) => enqueuedSince(tx, since, { task: "t", what: "a/b" }, people));
  const all = await enqueued(at, [alice, bob]);
  expect(all.people).toEqual(new Set([alice, bob]));
  const asked = [keyed("a/b-1", alice), keyed("a/b", bob), keyed("a/b", alice), keyed("a", alice)];
  expect(asked.map((one) => all.has(one))).toEqual([true, true, false, false]);
  expect((await enqueued(after(at, 1), [alice, bob])).people).toEqual(new Set([bob]));
  expect((await enqueued(at, [alice])).people).toEqual(new Set([alice]));
});
