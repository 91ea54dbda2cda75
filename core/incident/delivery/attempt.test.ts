import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import {
  conversation,
  delivery,
  flowStep,
  incident,
  individual,
  participant,
} from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { Refused } from "../../../platform/errors.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { at, insertSecond, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";
import type { DeliveryClaim, Outgoing } from "../../outbox/deliver.ts";
import { resendDelivery } from "../../outbox/resend.ts";
import { mostAttempts } from "../../outbox/work.ts";
import { attemptDelivery } from "./attempt.ts";

let outbox: Outbox;
let channel: Fake<"conversation">;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await outbox.empty();
  channel = fakeConversation({}, { slug: "channel", timeoutMilliseconds: 200 });
});
afterEach(() => channel.assertExpected());

const message = { subject: "INC-1: report", text: "How does it stand?" };
const one = async () => (await outbox.all())[0]!;
const context = () => outbox.context(pluginsOf(channel));
const attempt = (claim: DeliveryClaim, signal?: AbortSignal) => attemptDelivery(context(), claim, signal);

/** Enqueues a delivery, and claims it. */
async function queued(more: Partial<Outgoing> = {}): Promise<DeliveryClaim> {
  const { incidentId, alice } = outbox.ids;
  const key = { task: "t", what: "w", whom: crypto.randomUUID() };
  await outbox.deliver(pluginsOf(channel), { key, incidentId, individualId: alice, message, ...more });
  return (await outbox.claim()).find((claim) => claim.key.includes(key.whom))!;
}
const failing = () => {
  throw new Error("hunter2");
};

test("to a person: the plugin gets it with its key, and it is done", async () => {
  channel.answer({ direct: () => {} });
  const claim = await queued();
  expect(await attempt(claim)).toBe("done");
  const [call] = channel.to("direct");
  expect(call).toMatchObject({
    key: claim.key,
    message,
    person: { name: "alice" },
    incident: { title: "Disk full" },
  });
  expect(await one()).toMatchObject({ state: "Done", leaseUntil: null, dueAt: null, finishedAt: at });
  expect(await attempt(claim)).toBe("stale");
  expect(channel.calls).toHaveLength(1);
});

test("to everyone in the conversation", async () => {
  channel.answer({ send: () => {} });
  const claim = await queued({ individualId: undefined });
  expect(await attempt(claim)).toBe("done");
  expect(channel.to("send")[0]).toMatchObject({
    message,
    conversation: { incident: { title: "Disk full" } },
  });
});

test.each([
  [120, message.text],
  [121, `**Time:** 2026-12-01 12:00 UTC\n\n${message.text}`],
])("a message that is sent after %i s", async (seconds, text) => {
  channel.answer({ send: () => {} });
  const claim = await queued({ individualId: undefined });
  outbox.clock.advance(seconds);
  await attempt(claim);
  expect(channel.to("send")).toMatchObject([
    { message: { ...message, text }, occurredAt: at.toISOString(), sequence: claim.sequence },
  ]);
  outbox.clock.advance(-seconds);
});

test("a message about something earlier names its time at once", async () => {
  channel.answer({ send: () => {} });
  const occurredAt = after(at, -600);
  await attempt(await queued({ individualId: undefined, occurredAt }));
  const text = `**Time:** 2026-12-01 11:50 UTC\n\n${message.text}`;
  expect(channel.to("send")).toMatchObject([
    { message: { ...message, text }, occurredAt: occurredAt.toISOString() },
  ]);
});

test("a failing delivery is retried with increasing delays until it is dead", async () => {
  channel.answer({ direct: failing });
  let claim = await queued();
  const waited: number[] = [];
  for (;;) {
    const answer = await attempt(claim);
    const row = await one();
    expect(await attempt(claim)).toBe("stale");
    if (answer === "dead") break;
    expect(answer).toBe("again");
    expect(row.error).toBe("channel failed: Error");
    waited.push((row.dueAt!.getTime() - outbox.clock.now().getTime()) / 1000);
    claim = (await outbox.claim())[0]!;
  }
  expect(waited).toEqual([30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
  expect(channel.calls).toHaveLength(10);
  const { state, attempts, error } = await one();
  expect({ state, attempts, error }).toEqual({
    state: "Dead",
    attempts: 10,
    error: "channel failed: Error",
  });
  expect(outbox.logged.join("")).not.toContain("hunter2");
});

test.each([
  [5, 30],
  [300, 300],
  [86_400, 3600],
])("a delivery that is to wait %i s is retried after %i s", async (retryAfter, waited) => {
  channel.answer({
    direct: () => {
      throw { detail: "busy", retryAfter };
    },
  });
  expect(await attempt(await queued())).toBe("again");
  expect((await one()).dueAt!.getTime() - outbox.clock.now().getTime()).toBe(waited * 1000);
});

test("a permanently refused delivery is dead at once with the reason, and can be sent again", async () => {
  channel.answer({
    direct: () => {
      throw new Refused("1 of 1 mails were not sent (550)");
    },
  });
  const claim = await queued();
  expect(await attempt(claim)).toBe("dead");
  expect(await one()).toMatchObject({
    state: "Dead",
    attempts: 1,
    error: "channel failed: 1 of 1 mails were not sent (550)",
  });
  channel.answer({ direct: () => {} });
  await resendDelivery(outbox, claim.key);
  expect(await attempt((await outbox.claim())[0]!)).toBe("done");
});

test("a plugin that hangs or is no longer enabled fails the attempt", async () => {
  channel.answer({ direct: () => new Promise(() => {}) });
  const claim = await queued();
  expect(await attempt(claim)).toBe("again");
  expect((await one()).error).toBe("channel did not answer within 0.2 s");
  const [next] = await outbox.claim();
  expect(await attemptDelivery(outbox.context(pluginsOf()), next!)).toBe("again");
  expect((await one()).error).toBe("channel is no longer enabled");
});

test("when the worker stops, the delivery is due at once and no attempt is counted", async () => {
  const stop = new AbortController();
  const stopped = () => {
    stop.abort();
    return new Promise<void>(() => {});
  };
  channel.answer({ direct: stopped });
  const claim = await queued();
  expect(await attempt(claim, stop.signal)).toBe("given_back");
  expect(await one()).toMatchObject({ state: "Queued", leaseUntil: null, dueAt: at, attempts: 0 });
});

test("two attempts at the same claim record one outcome", async () => {
  const both = Promise.withResolvers<void>();
  channel.answer({
    direct: async () => {
      if (channel.calls.length === 2) both.resolve();
      await both.promise;
      failing();
    },
  });
  const claim = await queued();
  expect((await Promise.all([attempt(claim), attempt(claim)])).toSorted()).toEqual(["again", "stale"]);
  expect(await one()).toMatchObject({ attempts: 1 });
});

test("a delivery that was interrupted each time is dead with an unknown outcome", async () => {
  let claim = await queued();
  for (let died = 1; died < mostAttempts; died += 1) {
    expect(await outbox.claim()).toEqual([]);
    outbox.clock.advance((claim.leaseUntil.getTime() - outbox.clock.now().getTime()) / 1000);
    claim = (await outbox.claim())[0]!;
  }
  expect(claim.attempts).toBe(mostAttempts);
  outbox.clock.advance(3600);
  const [last] = await outbox.claim();
  expect(await attempt(claim)).toBe("stale");
  expect(await attempt(last!)).toBe("dead");
  expect((await one()).error).toBe("It was interrupted each time: it is not known whether it was done");
  expect(channel.calls).toHaveLength(0);
});

describe("a delivery is not sent but dead", () => {
  const dies = async (claim: DeliveryClaim) => {
    expect(await attempt(claim)).toBe("dead");
    expect(channel.calls).toHaveLength(0);
    return (await one()).error;
  };

  test("when the incident is now Restricted and the person does not take part", async () => {
    const [carol] = await outbox.db
      .insert(individual)
      .values({ name: "carol", email: "carol@example.com", createdAt: at, updatedAt: at })
      .returning();
    const claim = await queued({ individualId: carol!.id });
    await outbox.db.update(incident).set({ visibility: "Restricted" });
    expect(await dies(claim)).toBe("Its incident is Restricted, and this person is not a participant");
    channel.answer({ direct: () => {} });
    const toAlice = await queued();
    expect(await attempt(toAlice)).toBe("done");
    await outbox.db.update(incident).set({ visibility: "Open" });
  });

  test("when one of several incidents that it mentions is now Restricted", async () => {
    const second = await insertSecond(outbox);
    const claim = await queued({ about: [outbox.ids.incidentId, second] });
    await outbox.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, second));
    expect(await dies(claim)).toBe("An incident that it mentions has become Restricted");
  });

  test("when its conversation is archived", async () => {
    const claim = await queued();
    await outbox.db.update(conversation).set({ archivedAt: at });
    expect(await dies(claim)).toBe("The conversation of its incident is archived");
    await outbox.db.update(conversation).set({ archivedAt: null });
  });
});

test("a delivery whose conversation is being reopened waits for that", async () => {
  const claim = await queued();
  const { incidentId } = outbox.ids;
  const step = { incidentId, step: "reopened:conversation:channel", dueAt: at };
  await outbox.db.insert(flowStep).values(step);
  await outbox.db.update(conversation).set({ archivedAt: at });
  expect(await attempt(claim)).toBe("again");
  expect((await one()).error).toBe("Its conversation is not open yet");
  await outbox.db.update(conversation).set({ archivedAt: null });
  await outbox.db.delete(flowStep).where(eq(flowStep.step, step.step));
  channel.answer({ direct: () => {} });
  expect(await attempt((await outbox.claim())[0]!)).toBe("done");
});

test("what is said while a conversation is being opened waits for its welcome, until that has failed three times", async () => {
  const { incidentId } = outbox.ids;
  const ofStep = eq(flowStep.step, "reported:conversation:channel");
  const step = { incidentId, step: "reported:conversation:channel", dueAt: at, attempts: 1 };
  await outbox.db.insert(flowStep).values(step);
  channel.answer({ send: () => {}, direct: () => {} });
  expect(await attempt(await queued())).toBe("done");
  expect(await attempt(await queued({ individualId: undefined, topic: "now" }))).toBe("done");
  // Other plugins send the welcome in the step itself.
  expect(await attempt(await queued({ individualId: undefined, sequence: 0 }))).toBe("done");
  const claim = await queued({ individualId: undefined });
  expect(await attempt(claim)).toBe("given_back");
  const failed = { state: "Failed" as const, error: "The receiver answered 500" };
  await outbox.db
    .update(flowStep)
    .set({ ...failed, attempts: 2 })
    .where(ofStep);
  expect(await attempt((await outbox.claim())[0]!)).toBe("given_back");
  await outbox.db.update(flowStep).set({ attempts: 3 }).where(ofStep);
  expect(await attempt((await outbox.claim())[0]!)).toBe("done");
  await outbox.db.delete(flowStep).where(ofStep);
});

test("a delivery is deleted with its incident, and its claim then does nothing", async () => {
  const incidentId = await insertSecond(outbox);
  const claim = await queued({ incidentId });
  await outbox.db.delete(participant).where(eq(participant.incidentId, incidentId));
  await outbox.db.delete(incident).where(eq(incident.id, incidentId));
  expect(await outbox.db.$count(delivery)).toBe(0);
  expect(await attempt(claim)).toBe("stale");
});
