import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { conversation, delivery, incident, individual, participant } from "../../../drizzle/schema/index.ts";
import { Refused } from "../../../platform/errors.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { at, insertSecond, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";
import type { Outgoing } from "../../outbox/deliver.ts";
import { resendDelivery } from "../../outbox/resend.ts";
import { attemptDelivery, buryDelivery, Stopped } from "./attempt.ts";

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
const attempt = (jobId: string, signal?: AbortSignal) => attemptDelivery(context(), jobId, signal);

/** Enqueues one and returns it. */
async function queued(more: Partial<Outgoing> = {}) {
  const { incidentId, alice } = outbox.ids;
  const key = { task: "t", what: "w", whom: crypto.randomUUID() };
  await outbox.deliver(pluginsOf(channel), { key, incidentId, individualId: alice, message, ...more });
  const row = (await outbox.all()).find((each) => each.key.includes(key.whom))!;
  return { ...row, jobId: row.jobId! };
}
const failing = () => {
  throw new Error("hunter2");
};

test("to a person: the plugin gets it with its key, and it is done", async () => {
  channel.answer({ direct: () => {} });
  const { key, jobId } = await queued();
  expect(await attempt(jobId)).toBe("done");
  const [call] = channel.to("direct");
  expect(call).toMatchObject({ key, message, person: { name: "alice" }, incident: { title: "Disk full" } });
  expect(await one()).toMatchObject({ state: "Done", jobId: null, dueAt: null, finishedAt: at });
  expect(await attempt(jobId)).toBe("stale");
  expect(channel.calls).toHaveLength(1);
});

test("to everyone in the conversation", async () => {
  channel.answer({ send: () => {} });
  const { jobId } = await queued({ individualId: undefined });
  expect(await attempt(jobId)).toBe("done");
  expect(channel.to("send")[0]).toMatchObject({
    message,
    conversation: { incident: { title: "Disk full" } },
  });
});

test("one that fails is tried again, later each time, by a job of its own each, until it is dead", async () => {
  channel.answer({ direct: failing });
  let { jobId } = await queued();
  const waited: number[] = [];
  for (;;) {
    const answer = await attempt(jobId);
    const row = await one();
    expect(await attempt(jobId)).toBe("stale");
    if (answer === "dead") break;
    expect(answer).toBe("again");
    expect(row.lastError).toBe("channel failed: Error");
    waited.push((row.dueAt!.getTime() - outbox.clock.now().getTime()) / 1000);
    const jobs = await outbox.jobs();
    expect(jobs.some((job) => job.id === row.jobId && +new Date(job.start_after) === +row.dueAt!)).toBe(true);
    jobId = row.jobId!;
  }
  expect(waited).toEqual([30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
  expect(channel.calls).toHaveLength(10);
  const { state, attempts, lastError } = await one();
  expect({ state, attempts, lastError }).toEqual({
    state: "Dead",
    attempts: 10,
    lastError: "channel failed: Error",
  });
  expect(outbox.logged.join("")).not.toContain("hunter2");
});

test("one that is refused for good is dead at once, with the reason, and can be sent again", async () => {
  channel.answer({
    direct: () => {
      throw new Refused("1 of 1 mails were not sent (550)");
    },
  });
  const { key, jobId } = await queued();
  expect(await attempt(jobId)).toBe("dead");
  expect(await one()).toMatchObject({
    ...{ state: "Dead", attempts: 1, lastError: "channel failed: 1 of 1 mails were not sent (550)" },
  });
  channel.answer({ direct: () => {} });
  await resendDelivery(outbox, key);
  expect(await attempt((await one()).jobId!)).toBe("done");
});

test("a plugin that hangs, or is not chosen any more, has failed", async () => {
  channel.answer({ direct: () => new Promise(() => {}) });
  const { jobId } = await queued();
  expect(await attempt(jobId)).toBe("again");
  const { lastError, jobId: next } = await one();
  expect(lastError).toBe("channel did not answer within 0.2 s");
  expect(await attemptDelivery(outbox.context(pluginsOf()), next!)).toBe("again");
  expect((await one()).lastError).toBe("channel is not chosen any more");
});

test("when the worker stops, the same job stands for it, and no attempt is counted", async () => {
  const stop = new AbortController();
  const stopped = () => {
    stop.abort();
    return new Promise<void>(() => {});
  };
  channel.answer({ direct: stopped });
  const { jobId } = await queued();
  await expect(attempt(jobId, stop.signal)).rejects.toBeInstanceOf(Stopped);
  expect(await one()).toMatchObject({ state: "Queued", jobId, attempts: 0 });
});

test("two that try the same job note one outcome", async () => {
  const both = Promise.withResolvers<void>();
  channel.answer({
    direct: async () => {
      if (channel.calls.length === 2) both.resolve();
      await both.promise;
      failing();
    },
  });
  const { jobId } = await queued();
  expect((await Promise.all([attempt(jobId), attempt(jobId)])).toSorted()).toEqual(["again", "stale"]);
  expect(await one()).toMatchObject({ attempts: 1 });
  expect(await outbox.jobs()).toHaveLength(2);
});

test("what is interrupted each time is dead, and says that nobody knows", async () => {
  const { jobId } = await queued();
  expect(await buryDelivery(context(), jobId)).toBe("dead");
  expect((await one()).lastError).toBe("It was interrupted each time: nobody knows whether it was sent");
  expect(await buryDelivery(context(), jobId)).toBe("stale");
});

describe("is not sent, but dead,", () => {
  const dies = async (jobId: string) => {
    expect(await attempt(jobId)).toBe("dead");
    expect(channel.calls).toHaveLength(0);
    return (await one()).lastError;
  };

  test("when the incident has become Restricted and the person takes no part", async () => {
    const [carol] = await outbox.db
      .insert(individual)
      .values({ name: "carol", email: "carol@example.com", createdAt: at, updatedAt: at })
      .returning();
    const { jobId } = await queued({ individualId: carol!.id });
    await outbox.db.update(incident).set({ visibility: "Restricted" });
    expect(await dies(jobId)).toBe("Its incident is Restricted, and this person takes no part in it");
    channel.answer({ direct: () => {} });
    const toAlice = await queued();
    expect(await attempt(toAlice.jobId)).toBe("done");
    await outbox.db.update(incident).set({ visibility: "Open" });
  });

  test("when one of several incidents that it tells of has become Restricted", async () => {
    const second = await insertSecond(outbox);
    const { jobId } = await queued({ about: [outbox.ids.incidentId, second] });
    await outbox.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, second));
    expect(await dies(jobId)).toBe("An incident that it tells of has become Restricted");
  });

  test("when its conversation is archived", async () => {
    const { jobId } = await queued();
    await outbox.db.update(conversation).set({ archivedAt: at });
    expect(await dies(jobId)).toBe("The conversation of its incident is archived");
    await outbox.db.update(conversation).set({ archivedAt: null });
  });
});

test("goes with its incident, and its job then does nothing", async () => {
  const incidentId = await insertSecond(outbox);
  const { jobId } = await queued({ incidentId });
  await outbox.db.delete(participant).where(eq(participant.incidentId, incidentId));
  await outbox.db.delete(incident).where(eq(incident.id, incidentId));
  expect(await outbox.db.$count(delivery)).toBe(0);
  expect(await attempt(jobId)).toBe("stale");
});
