import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import type { Fake } from "../plugins/fake/fake.ts";
import { fakeConversation } from "../plugins/fake/fakes.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { insertSecond, type Outbox, startOutbox } from "../tests/support/domain/delivery.ts";
import { until } from "../tests/support/process/until.ts";
import { sendDeliveries } from "./deliveries.ts";
import { DatabaseTime } from "./time.ts";

let outbox: Outbox;
let both: number;
let channel: Fake<"conversation">;
let mail: Fake<"conversation">;
let stop: AbortController;
let working: Promise<void>[];
beforeAll(async () => {
  outbox = await startOutbox(10);
  both = await insertSecond(outbox, {}, ["channel", "mail"]);
});
afterAll(() => outbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await outbox.empty();
  channel = fakeConversation({ direct: () => {} }, { slug: "channel" });
  mail = fakeConversation({ direct: () => {} }, { slug: "mail", timeoutMilliseconds: 60_000 });
  stop = new AbortController();
  working = [];
});
afterEach(async () => {
  stop.abort();
  await Promise.all(working);
});

function start(grace = 20_000): void {
  const { db, config, log, plugins } = outbox.context(pluginsOf(channel, mail));
  const time = new DatabaseTime();
  time.observe(new Date(), performance.now(), performance.now());
  const deps = { db: () => db, time, config, log, plugins };
  working.push(sendDeliveries(deps, stop.signal, { poll: 0.5, grace }));
}
const enqueue = (count: number, incidentId = outbox.ids.incidentId) =>
  outbox.deliver(
    pluginsOf(channel, mail),
    ...Array.from({ length: count }, (_, i) => ({
      key: { task: "t", what: "w", whom: `${i}` },
      incidentId,
      individualId: outbox.ids.alice,
      message: { subject: "s", text: "t" },
    })),
  );
const states = async () => (await outbox.all()).map(({ state }) => state);

test("a plugin that hangs does not delay the others", async () => {
  mail.answer({ direct: () => new Promise(() => {}) });
  await enqueue(20, both);
  start(100);
  await until("the other's", async () => channel.to("direct").length === 20);
  expect(mail.to("direct").length).toBeLessThanOrEqual(3);
});

test("after a stop nothing new starts, and a hanging delivery is left to the next worker", async () => {
  mail.answer({ direct: () => new Promise(() => {}) });
  await enqueue(1, both);
  start(100);
  await until("both calls", async () => channel.calls.length + mail.calls.length === 2);
  stop.abort();
  await Promise.all(working);
  const [left] = (await outbox.all()).filter(({ pluginSlug }) => pluginSlug === "mail");
  expect(left).toMatchObject({ state: "Queued", attempts: 0 });
  expect(mail.to("direct")[0]?.signal.aborted).toBe(true);
  mail.answer({ direct: () => {} });
  stop = new AbortController();
  start();
  await until("it is done", async () => (await states()).every((state) => state === "Done"));
});
