import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { conversation, delivery } from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { insertSecond, type Outbox, startOutbox } from "../../tests/support/domain/delivery.ts";
import { deliver, type Outgoing } from "./deliver.ts";

let outbox: Outbox;
let alice: number;
let incidentId: number;
beforeAll(async () => {
  outbox = await startOutbox(20);
  ({ alice, incidentId } = outbox.ids);
});
afterAll(() => outbox[Symbol.asyncDispose]());
beforeEach(() => outbox.empty());

const channel = fakeConversation({}, { slug: "channel" });
const mail = fakeConversation({}, { slug: "mail" });
const plugins = pluginsOf(channel, mail);
const message = { subject: "INC-1: report", text: "How does it stand?" };
const outgoing = (whom = "alice", more: Partial<Outgoing> = {}): Outgoing => ({
  key: { task: "reminder", what: "incident-1", whom },
  incidentId,
  individualId: alice,
  message,
  ...more,
});

test("is enqueued due now, in the transaction of its cause", async () => {
  const { reached, unreachable } = await outbox.deliver(plugins, outgoing());
  expect([reached.length, unreachable]).toEqual([1, []]);
  const [row] = await outbox.all();
  expect(row).toMatchObject({
    key: "reminder/incident-1/alice/channel",
    task: "reminder",
    incidentId,
    individualId: alice,
    about: [incidentId],
    pluginSlug: "channel",
    ...message,
    state: "Queued",
    attempts: 0,
    queuedAt: outbox.clock.now(),
    finishedAt: null,
    error: null,
  });
  // A writer's clock that is ahead does not delay it.
  expect(row!.dueAt!.getTime()).toBeLessThan(Date.now() + 1000);
  const undone = outbox.db.transaction(async (tx) => {
    await deliver(tx, { clock: outbox.clock, plugins }, [outgoing("bob")]);
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  expect(await outbox.all()).toHaveLength(1);
});

describe("a key is used once", () => {
  test("by 20 concurrent callers", async () => {
    const many = [outgoing("alice"), outgoing("bob"), outgoing("carol")];
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        outbox.deliver(plugins, ...(i % 2 === 0 ? many : many.toReversed())),
      ),
    );
    expect((await outbox.all()).map(({ key }) => key.split("/")[2])).toEqual(["alice", "bob", "carol"]);
  });

  test("without a deadlock when two callers use different orders", async () => {
    const { db, clock } = outbox;
    let other: Promise<unknown> = Promise.resolve();
    await db.transaction(async (tx) => {
      await deliver(tx, { clock, plugins }, [outgoing("a")]);
      other = outbox.deliver(plugins, outgoing("b"), outgoing("a"));
      await somebodyWaits(db);
      await deliver(tx, { clock, plugins }, [outgoing("b")]);
    });
    await other;
    expect(await outbox.all()).toHaveLength(2);
  });

  test("forever, even after the delivery is done", async () => {
    await outbox.deliver(plugins, outgoing());
    await outbox.db.update(delivery).set({ state: "Done", dueAt: null, finishedAt: outbox.clock.now() });
    expect((await outbox.deliver(plugins, outgoing())).reached).toHaveLength(1);
    expect(await outbox.all()).toMatchObject([{ state: "Done" }]);
  });

  test("and different keys never have the same spelling", async () => {
    const key = { task: "t", what: "a/b", whom: "c" };
    await outbox.deliver(
      plugins,
      outgoing("", { key }),
      outgoing("", { key: { ...key, what: "a", whom: "b/c" } }),
    );
    expect((await outbox.all()).map((row) => row.key)).toEqual(["t/a%2Fb/c/channel", "t/a/b%2Fc/channel"]);
  });
});

describe("a message is sent through each plugin with an open conversation", () => {
  test("that is selected", async () => {
    const second = await insertSecond(outbox, {}, ["channel", "mail", "pager"]);
    await outbox.deliver(plugins, outgoing("alice", { incidentId: second }));
    expect((await outbox.all()).map(({ pluginSlug }) => pluginSlug)).toEqual(["channel", "mail"]);
  });

  test("or through the named one, if it is among them", async () => {
    const second = await insertSecond(outbox, {}, ["channel", "mail", "pager"]);
    const by = (pluginSlug: string) => outgoing(pluginSlug, { incidentId: second, pluginSlug });
    const { reached, unreachable } = await outbox.deliver(plugins, by("mail"), by("pager"));
    expect([reached, unreachable].map((some) => some.map(({ key }) => key.whom))).toEqual([
      ["mail"],
      ["pager"],
    ]);
    expect((await outbox.all()).map(({ key }) => key)).toEqual(["reminder/incident-1/mail/mail"]);
  });

  test("an incident without an open conversation is unreachable, and blocks no other", async () => {
    const none = await insertSecond(outbox, {}, ["pager"]);
    const archived = await insertSecond(outbox);
    await outbox.db
      .update(conversation)
      .set({ archivedAt: outbox.clock.now() })
      .where(eq(conversation.incidentId, archived));
    const { reached, unreachable } = await outbox.deliver(
      plugins,
      outgoing("a", { incidentId: none }),
      outgoing("b", { incidentId: archived }),
      outgoing("c"),
    );
    expect(unreachable.map(({ key }) => key.whom)).toEqual(["a", "b"]);
    expect(reached.map(({ key }) => key.whom)).toEqual(["c"]);
    expect(await outbox.all()).toHaveLength(1);
  });
});
