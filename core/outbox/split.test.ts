import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { conversation, delivery } from "../../drizzle/schema/index.ts";
import { Refused } from "../../platform/errors.ts";
import type { Fake } from "../../plugins/fake/fake.ts";
import { fakeConversation, fakeMailing } from "../../plugins/fake/fakes.ts";
import { type FakePlugins, pluginsOf } from "../../plugins/fake/plugins.ts";
import { at, claimAll, insertSecond, type Outbox, startOutbox } from "../../tests/support/domain/delivery.ts";
import { attemptDelivery } from "../incident/delivery/attempt.ts";
import type { DeliveryClaim, Outgoing } from "./deliver.ts";
import { countDeliveries, listDeliveries } from "./list.ts";
import { resendAllDead, resendDelivery } from "./resend.ts";

let outbox: Outbox;
let mailing: Fake<"conversation">;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await outbox.empty();
  mailing = fakeMailing({ recipients: () => ["a", "b"], send: () => {} }, { slug: "channel" });
});
afterEach(() => mailing.assertExpected());

const message = { subject: "INC-1: report", text: "How does it stand?" };
const parent = "t/w/everyone/channel";
const attempt = (claim: DeliveryClaim, plugins: FakePlugins = pluginsOf(mailing)) =>
  attemptDelivery(outbox.context(plugins), claim);
const byKey = async () => new Map((await outbox.all()).map((row) => [row.key.slice(parent.length), row]));
const states = async () =>
  (await outbox.all()).map(({ key, state }) => `${key.slice(parent.length)} ${state}`);
const claimOf = async (key: string) =>
  (await claimAll(outbox.context(pluginsOf()), eq(delivery.key, `${parent}${key}`)))[0]!;

/** Enqueues a delivery to everyone, and claims it. */
async function queued(more: Partial<Outgoing> = {}): Promise<DeliveryClaim> {
  const key = { task: "t", what: "w", whom: "everyone" };
  const { incidentId } = outbox.ids;
  await outbox.deliver(pluginsOf(mailing), { key, incidentId, message, ...more });
  return await claimOf("");
}

/** Enqueues a delivery, and splits it. */
async function split(): Promise<void> {
  expect(await attempt(await queued())).toBe("split");
}

test("each recipient gets a delivery", async () => {
  const second = await insertSecond(outbox);
  expect(await attempt(await queued({ about: [outbox.ids.incidentId, second] }))).toBe("split");
  expect(mailing.to("recipients")).toMatchObject([
    { key: parent, conversation: { incident: { title: "Disk full" } } },
  ]);
  const rows = await byKey();
  expect(rows.get("")).toMatchObject({ state: "Split", leaseUntil: null, dueAt: null, finishedAt: at });
  for (const recipient of ["a", "b"]) {
    const row = rows.get(`/${recipient}`)!;
    expect(row).toMatchObject({
      ...message,
      recipient,
      task: "t",
      individualId: null,
      pluginSlug: "channel",
      state: "Queued",
      about: [outbox.ids.incidentId, second],
      attempts: 0,
      queuedAt: at,
    });
    expect(await attempt(await claimOf(`/${recipient}`))).toBe("done");
  }
  const key = (of: string) => `${parent}/${of}`;
  expect(mailing.to("send").map((call) => [call.recipient, call.key, call.message])).toEqual([
    ...[["a", key("a"), message] as const, ["b", key("b"), message] as const].map((one) => [...one]),
  ]);
  expect(mailing.to("recipients")).toHaveLength(1);
});

test("only the recipient that could not be reached is retried", async () => {
  await split();
  expect(await attempt(await claimOf("/a"))).toBe("done");
  mailing.answer({ send: () => Promise.reject(new Error("greylisted")) });
  expect(await attempt(await claimOf("/b"))).toBe("again");
  mailing.answer({ send: () => {} });
  expect(await attempt(await claimOf("/b"))).toBe("done");
  expect(mailing.to("send").map(({ recipient }) => recipient)).toEqual(["a", "b", "b"]);
});

test("only a permanently refused recipient is dead, and only it is sent again", async () => {
  await split();
  expect(await attempt(await claimOf("/a"))).toBe("done");
  mailing.answer({ send: () => Promise.reject(new Refused("nobody of that name")) });
  expect(await attempt(await claimOf("/b"))).toBe("dead");
  mailing.answer({ send: () => {} });
  expect(await states()).toEqual([" Split", "/a Done", "/b Dead"]);
  expect(await countDeliveries(outbox, ["Queued", "Done", "Dead"])).toEqual({ Queued: 0, Done: 1, Dead: 1 });
  expect(await listDeliveries(outbox, { states: ["Queued", "Done", "Dead"], limit: 9 })).toMatchObject([
    { key: `${parent}/a`, recipient: "a" },
    { key: `${parent}/b`, recipient: "b", error: "channel failed: nobody of that name" },
  ]);
  await expect(resendDelivery(outbox, parent)).rejects.toThrow("this delivery is Split");
  expect(await resendAllDead(outbox)).toBe(1);
  expect(await attempt(await claimOf("/b"))).toBe("done");
  expect(mailing.to("send").map(({ recipient }) => recipient)).toEqual(["a", "b", "b"]);
});

describe("a delivery is split once", () => {
  test("by two workers that both have its recipients", async () => {
    const both = Promise.withResolvers<void>();
    mailing.answer({
      recipients: async () => {
        if (mailing.to("recipients").length === 2) both.resolve();
        await both.promise;
        return ["a", "b"];
      },
    });
    const claim = await queued();
    expect((await Promise.all([attempt(claim), attempt(claim)])).toSorted()).toEqual(["split", "stale"]);
    expect(await states()).toEqual([" Split", "/a Queued", "/b Queued"]);
    expect(await attempt(claim)).toBe("stale");
  });

  test("and completely or not at all: if the worker dies halfway, it is unchanged", async () => {
    const claim = await queued();
    await outbox.db.execute(sql`
      create function no_b() returns trigger language plpgsql as $$ begin raise 'killed'; end $$;
      create trigger no_b before insert on delivery for each row when (new.recipient = 'b') execute function no_b()`);
    await expect(attempt(claim)).rejects.toThrow();
    await outbox.db.execute(sql`drop trigger no_b on delivery; drop function no_b`);
    expect((await outbox.all()).map(({ state, leaseUntil }) => [state, leaseUntil])).toEqual([
      ["Queued", claim.leaseUntil],
    ]);
    mailing.answer({ recipients: () => ["b", "c"] });
    expect(await attempt(claim)).toBe("split");
    expect(await states()).toEqual([" Split", "/b Queued", "/c Queued"]);
  });
});

test("no recipients, a duplicate recipient, and ten thousand", async () => {
  const claim = await queued();
  mailing.answer({ recipients: () => Array.from({ length: 10_001 }, (_, i) => `individual-${i}`) });
  expect(await attempt(claim)).toBe("again");
  mailing.answer({ recipients: () => Array.from({ length: 10_000 }, (_, i) => `individual-${i}`) });
  expect(await attempt(await claimOf(""))).toBe("split");
  expect(await countDeliveries(outbox, ["Queued"])).toEqual({ Queued: 10_000 });
  await outbox.empty();
  mailing.answer({ recipients: () => ["a", "a"] });
  await split();
  expect(await states()).toEqual([" Split", "/a Queued"]);
  await outbox.empty();
  mailing.answer({ recipients: () => [] });
  await split();
  expect(await states()).toEqual([" Done"]);
});

test.each([
  ["an address", "a@example.com"],
  ["a path", "a/b"],
  ["several words", "Alice Smith"],
  ["an empty string", ""],
])("%s is not a valid recipient", async (_, recipient) => {
  mailing.answer({ recipients: () => ["a", recipient] });
  expect(await attempt(await queued())).toBe("again");
  expect((await outbox.all())[0]?.error).toStartWith("channel returned an invalid answer: /1");
});

describe("a delivery to a recipient is not sent", () => {
  test("when an incident that it mentions is now Restricted, or its conversation is archived", async () => {
    const second = await insertSecond(outbox, { visibility: "Restricted" });
    await attempt(await queued());
    await outbox.db.execute(
      sql`update delivery set about = about || ${second}::text::jsonb where recipient = 'a'`,
    );
    expect(await attempt(await claimOf("/a"))).toBe("dead");
    await outbox.db.update(conversation).set({ archivedAt: at });
    expect(await attempt(await claimOf("/b"))).toBe("dead");
    await outbox.db.update(conversation).set({ archivedAt: null });
    expect(mailing.to("send")).toEqual([]);
  });

  test("to everyone by a plugin that no longer supports recipients", async () => {
    await split();
    const other = fakeConversation({}, { slug: "channel" });
    expect(await attempt(await claimOf("/a"), pluginsOf(other))).toBe("again");
    expect(other.calls).toEqual([]);
    expect((await byKey()).get("/a")?.error).toBe("channel no longer sends to one recipient");
  });
});
