import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { conversation, incident } from "../../drizzle/schema/index.ts";
import { Refused } from "../../platform/errors.ts";
import type { Fake } from "../../plugins/fake/fake.ts";
import { fakeConversation, fakeMailing } from "../../plugins/fake/fakes.ts";
import { type FakePlugins, pluginsOf } from "../../plugins/fake/plugins.ts";
import { at, insertSecond, type Outbox, startOutbox } from "../../tests/support/domain/delivery.ts";
import { attemptDelivery } from "../incident/delivery/attempt.ts";
import type { Outgoing } from "./deliver.ts";
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
const attempt = (jobId: string | null, plugins: FakePlugins = pluginsOf(mailing)) =>
  attemptDelivery(outbox.context(plugins), jobId ?? "");
const byKey = async () => new Map((await outbox.all()).map((row) => [row.key.slice(parent.length), row]));
const states = async () =>
  (await outbox.all()).map(({ key, state }) => `${key.slice(parent.length)} ${state}`);
const jobOf = async (key: string) => (await byKey()).get(key)!.jobId;

/** Enqueues one to everyone. */
async function queued(more: Partial<Outgoing> = {}): Promise<string> {
  const key = { task: "t", what: "w", whom: "everyone" };
  const { incidentId } = outbox.ids;
  await outbox.deliver(pluginsOf(mailing), { key, incidentId, message, ...more });
  return (await jobOf(""))!;
}

/** Enqueues one, and splits it. */
async function split(): Promise<void> {
  expect(await attempt(await queued())).toBe("split");
}

test("each recipient has a delivery of its own, and a job where older workers do not look", async () => {
  const second = await insertSecond(outbox);
  await queued({ about: [outbox.ids.incidentId, second] });
  expect(await attempt(await jobOf(""))).toBe("split");
  expect(mailing.to("recipients")).toMatchObject([
    { key: parent, conversation: { incident: { title: "Disk full" } } },
  ]);
  const rows = await byKey();
  expect(rows.get("")).toMatchObject({ state: "Split", jobId: null, dueAt: null, finishedAt: at });
  for (const recipient of ["a", "b"]) {
    const row = rows.get(`/${recipient}`)!;
    expect(row).toMatchObject({
      ...{ ...message, recipient, task: "t", individualId: null, pluginSlug: "channel", state: "Queued" },
      ...{ about: [outbox.ids.incidentId, second], attempts: 0, queuedAt: at, dueAt: at },
    });
    const jobs = await outbox.jobs();
    expect(jobs.filter(({ id }) => id === row.jobId)).toMatchObject([{ name: "delivery-recipient" }]);
    expect(await attempt(row.jobId)).toBe("done");
  }
  const key = (of: string) => `${parent}/${of}`;
  expect(mailing.to("send").map((call) => [call.recipient, call.key, call.message])).toEqual([
    ...[["a", key("a"), message] as const, ["b", key("b"), message] as const].map((one) => [...one]),
  ]);
  expect(mailing.to("recipients")).toHaveLength(1);
});

test("one who cannot be reached is tried again alone, by a job of the same queue", async () => {
  await split();
  expect(await attempt(await jobOf("/a"))).toBe("done");
  mailing.answer({ send: () => Promise.reject(new Error("greylisted")) });
  expect(await attempt(await jobOf("/b"))).toBe("again");
  mailing.answer({ send: () => {} });
  const next = await jobOf("/b");
  expect((await outbox.jobs()).find(({ id }) => id === next)?.name).toBe("delivery-recipient");
  expect(await attempt(next)).toBe("done");
  expect(mailing.to("send").map(({ recipient }) => recipient)).toEqual(["a", "b", "b"]);
});

test("one who is refused for good is dead alone, and is sent again alone", async () => {
  await split();
  expect(await attempt(await jobOf("/a"))).toBe("done");
  mailing.answer({ send: () => Promise.reject(new Refused("nobody of that name")) });
  expect(await attempt(await jobOf("/b"))).toBe("dead");
  mailing.answer({ send: () => {} });
  expect(await states()).toEqual([" Split", "/a Done", "/b Dead"]);
  expect(await countDeliveries(outbox)).toEqual({ Queued: 0, Done: 1, Dead: 1 });
  expect(await listDeliveries(outbox, { states: ["Queued", "Done", "Dead"], limit: 9 })).toMatchObject([
    { key: `${parent}/a`, recipient: "a" },
    { key: `${parent}/b`, recipient: "b", lastError: "channel failed: nobody of that name" },
  ]);
  await expect(resendDelivery(outbox, parent)).rejects.toThrow("this delivery is Split");
  expect(await resendAllDead(outbox)).toBe(1);
  const again = await jobOf("/b");
  expect((await outbox.jobs()).find(({ id }) => id === again)?.name).toBe("delivery-recipient");
  expect(await attempt(again)).toBe("done");
  expect(mailing.to("send").map(({ recipient }) => recipient)).toEqual(["a", "b", "b"]);
});

describe("is split once", () => {
  test("by two workers that have both asked", async () => {
    const both = Promise.withResolvers<void>();
    mailing.answer({
      recipients: async () => {
        if (mailing.to("recipients").length === 2) both.resolve();
        await both.promise;
        return ["a", "b"];
      },
    });
    const jobId = await queued();
    expect((await Promise.all([attempt(jobId), attempt(jobId)])).toSorted()).toEqual(["split", "stale"]);
    expect(await states()).toEqual([" Split", "/a Queued", "/b Queued"]);
    expect(await outbox.jobs()).toHaveLength(3);
    expect(await attempt(jobId)).toBe("stale");
  });

  test("and whole or not at all: a worker that dies between leaves it as it was", async () => {
    const jobId = await queued();
    await outbox.db.execute(sql`
      create function no_b() returns trigger language plpgsql as $$ begin raise 'killed'; end $$;
      create trigger no_b before insert on delivery for each row when (new.recipient = 'b') execute function no_b()`);
    await expect(attempt(jobId)).rejects.toThrow();
    await outbox.db.execute(sql`drop trigger no_b on delivery; drop function no_b`);
    expect((await outbox.all()).map(({ state, jobId: of }) => [state, of])).toEqual([["Queued", jobId]]);
    expect(await outbox.jobs()).toHaveLength(1);
    mailing.answer({ recipients: () => ["b", "c"] });
    expect(await attempt(jobId)).toBe("split");
    expect(await states()).toEqual([" Split", "/b Queued", "/c Queued"]);
  });
});

test("nobody, somebody twice, and ten thousand", async () => {
  const jobId = await queued();
  mailing.answer({ recipients: () => Array.from({ length: 10_001 }, (_, i) => `individual-${i}`) });
  expect(await attempt(jobId)).toBe("again");
  mailing.answer({ recipients: () => Array.from({ length: 10_000 }, (_, i) => `individual-${i}`) });
  expect(await attempt(await jobOf(""))).toBe("split");
  expect(await countDeliveries(outbox)).toMatchObject({ Queued: 10_000 });
  expect(new Set((await outbox.jobs()).map(({ id }) => id)).size).toBe(10_002);
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
  ["words", "Alice Smith"],
  ["nothing", ""],
])("%s is no recipient", async (_, recipient) => {
  mailing.answer({ recipients: () => ["a", recipient] });
  expect(await attempt(await queued())).toBe("again");
  expect((await outbox.all())[0]?.lastError).toStartWith("channel answered nonsense: /1");
});

describe("one to a recipient is not sent", () => {
  test("when an incident that it tells of has become Restricted, or its conversation is archived", async () => {
    const second = await insertSecond(outbox, { visibility: "Restricted" });
    await queued();
    await attempt(await jobOf(""));
    await outbox.db.execute(
      sql`update delivery set about = about || ${second}::text::jsonb where recipient = 'a'`,
    );
    expect(await attempt(await jobOf("/a"))).toBe("dead");
    await outbox.db.update(conversation).set({ archivedAt: at });
    expect(await attempt(await jobOf("/b"))).toBe("dead");
    await outbox.db.update(conversation).set({ archivedAt: null });
    expect(mailing.to("send")).toEqual([]);
  });

  test("to everyone, by a plugin that does not know recipients any more", async () => {
    await split();
    const other = fakeConversation({}, { slug: "channel" });
    expect(await attempt(await jobOf("/a"), pluginsOf(other))).toBe("again");
    expect(other.calls).toEqual([]);
    expect((await byKey()).get("/a")?.lastError).toBe("channel no longer sends to one recipient");
  });
});

test("one to a person goes to that person", async () => {
  mailing.answer({ direct: () => {} });
  expect(await attempt(await queued({ individualId: outbox.ids.alice }))).toBe("done");
  expect(mailing.calls.map(({ method }) => method)).toEqual(["direct"]);
});

test("they go with their incident", async () => {
  await queued({ incidentId: await insertSecond(outbox, { visibility: "Open" }) });
  const jobId = await jobOf("");
  expect(await attempt(jobId)).toBe("split");
  const child = await jobOf("/a");
  await outbox.db.delete(incident).where(sql`${incident.id} > ${outbox.ids.incidentId}`);
  expect(await outbox.all()).toEqual([]);
  expect(await attempt(child)).toBe("stale");
});
