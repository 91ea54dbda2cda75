import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { deliver } from "../core/outbox/deliver.ts";
import { resendAllDead } from "../core/outbox/resend.ts";
import { delivery, incident } from "../drizzle/schema/index.ts";
import { Refused, Unavailable } from "../platform/errors.ts";
import type { Fake } from "../plugins/fake/fake.ts";
import { fakeConversation, fakeMailing } from "../plugins/fake/fakes.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { noteAsked, rowsRead } from "../tests/support/database/statements.ts";
import { insertSecond, type Outbox, startOutbox } from "../tests/support/domain/delivery.ts";
import { until } from "../tests/support/process/until.ts";
import { sendDeliveries } from "./deliveries.ts";
import { DatabaseTime } from "./time.ts";

let outbox: Outbox;
let chat: Fake<"conversation">;
/** The messages that the plugin took, by subject. */
let taken: string[];
let stop: AbortController;
let working: Promise<void>[];
beforeAll(async () => {
  outbox = await startOutbox(20);
});
afterAll(() => outbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await outbox.empty();
  taken = [];
  chat = fakeConversation({ send: take, direct: take }, { slug: "channel" });
  stop = new AbortController();
  working = [];
});
afterEach(async () => {
  stop.abort();
  await Promise.all(working);
});

const take = async ({ message }: { message: { subject: string } }) => {
  // An earlier message does not take longer or shorter than a later one.
  await Bun.sleep(Math.random() * 5);
  taken.push(message.subject);
};
/** Fails for these messages. */
const failing = (fails: (subject: string) => boolean, error: () => Error = down) => ({
  send: async (call: { message: { subject: string } }) => {
    if (fails(call.message.subject)) throw error();
    await take(call);
  },
});
const down = () => new Unavailable("the receiver answered 500");

function start(workers = 1): void {
  const { db, config, log, plugins } = outbox.context(pluginsOf(chat));
  for (let i = 0; i < workers; i += 1) {
    const time = new DatabaseTime();
    time.observe(new Date(), performance.now(), performance.now());
    const deps = { db: () => db, time, config, log, plugins };
    working.push(sendDeliveries(deps, stop.signal, { poll: 0.05, grace: 100 }));
  }
}
/** Queues messages in one transaction each, like servers do: with the incident locked. */
const queue = async (
  subjects: readonly string[],
  more: { incidentId?: number; individualId?: number; topic?: string } = {},
) => {
  for (const subject of subjects) await queueOne(subject, more);
};
const queueOne = (
  subject: string,
  more: { incidentId?: number; individualId?: number; topic?: string } = {},
) =>
  outbox.db.transaction(async (tx) => {
    const incidentId = more.incidentId ?? outbox.ids.incidentId;
    await tx.select().from(incident).where(eq(incident.id, incidentId)).for("no key update");
    // Keys do not sort like the messages.
    const key = { task: "t", what: String(Math.random()), whom: "conversation" };
    const outgoing = { key, incidentId, message: { subject, text: "t" }, ...more };
    await deliver(tx, { clock: { now: () => new Date() }, plugins: pluginsOf(chat) }, [outgoing]);
  });
const numbered = (count: number, prefix = "q") => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
/** Ends the pauses of failed messages. */
const endPauses = () =>
  outbox.db.execute(sql`update delivery set due_at = now() where state = 'Queued' and lease_until is null`);
const row = async (subject: string) => {
  const [found] = await outbox.db.select().from(delivery).where(eq(delivery.subject, subject));
  return found!;
};
const hasFailed = (subject: string, times: number) =>
  until(`failure ${times} of ${subject}`, async () => {
    const { attempts, leaseUntil } = await row(subject);
    return attempts === times && leaseUntil === null;
  });

test("60 quick messages arrive in order, through several workers", async () => {
  const second = await insertSecond(outbox);
  start(4);
  await Promise.all([queue(numbered(60)), queue(numbered(60, "r"), { incidentId: second })]);
  await until("all to be taken", () => taken.length === 120);
  expect(taken.filter((one) => one.startsWith("q"))).toEqual(numbered(60));
  expect(taken.filter((one) => one.startsWith("r"))).toEqual(numbered(60, "r"));
  const sent = chat.to("send").filter(({ message }) => message.subject.startsWith("q"));
  const sequence = sent.map((call) => call.sequence!);
  expect(sequence).toEqual(sequence.toSorted((a, b) => a - b));
});

test("a receiver that fails for a while gets all messages in order, and nothing else waits for them", async () => {
  const second = await insertSecond(outbox);
  let isDown = true;
  chat.answer(failing((subject) => isDown && subject.startsWith("q")));
  start(3);
  await queue(numbered(10));
  await hasFailed("q0", 1);
  await queue(["to alice"], { individualId: outbox.ids.alice });
  await queue(["reminder"], { topic: "about now" });
  await queue(["elsewhere"], { incidentId: second });
  await until("the others", () => taken.length === 3);
  expect(taken.toSorted()).toEqual(["elsewhere", "reminder", "to alice"]);
  await endPauses();
  await hasFailed("q0", 2);
  isDown = false;
  await endPauses();
  await until("all to be taken", () => taken.length === 13);
  expect(taken.slice(3)).toEqual(numbered(10));
});

test("one that keeps failing holds the others back until its third attempt has failed", async () => {
  chat.answer(failing((subject) => subject === "q0"));
  start(2);
  await queue(numbered(4));
  for (const times of [1, 2]) {
    await hasFailed("q0", times);
    expect(taken).toEqual([]);
    await endPauses();
  }
  await until("the others", () => taken.length === 3);
  expect(taken).toEqual(["q1", "q2", "q3"]);
  expect(await row("q0")).toMatchObject({ attempts: 3, state: "Queued" });
  await queue(["q4"]);
  await until("a later one", () => taken.length === 4);
  // It was tried again when the first of them was sent, but not for each.
  await hasFailed("q0", 3);
  expect(chat.to("send").filter(({ message }) => message.subject === "q0")).toHaveLength(4);
});

test("those that failed in a long outage are sent when one of them is sent again, before all later ones", async () => {
  let isDown = true;
  chat.answer(failing(() => isDown));
  start(2);
  await queue(numbered(5));
  const endPause = (subject: string) =>
    outbox.db.execute(sql`update delivery set due_at = now() where subject = ${subject}`);
  for (const [subject, attempts] of [
    ["q0", 3],
    ["q1", 3],
    ["q2", 1],
  ] as const)
    for (let times = 1; times <= attempts; times += 1) {
      await hasFailed(subject, times);
      if (times < attempts) await endPause(subject);
    }
  isDown = false;
  await endPause("q2");
  await until("all", () => taken.length === 5);
  expect(taken).toEqual(["q2", "q0", "q1", "q3", "q4"]);
});

test("one that the receiver wants much later holds nothing back", async () => {
  const busy = () => new Unavailable("the receiver answered 429", { retryAfter: 1800 });
  chat.answer(failing((subject) => subject === "q0", busy));
  start(2);
  await queue(numbered(3));
  await until("the others", () => taken.length === 2);
  expect(taken).toEqual(["q1", "q2"]);
});

test("a dead one holds nothing back, and is in order again when an operator resends it", async () => {
  let isRefused = true;
  const refused = () => new Refused("the receiver answered 400");
  chat.answer(failing((subject) => isRefused && ["q0", "q1"].includes(subject), refused));
  start(2);
  await queue(numbered(4));
  await until("the others", () => taken.length === 2);
  isRefused = false;
  expect(await resendAllDead({ db: outbox.db, clock: { now: () => new Date() } })).toBe(2);
  await until("both", () => taken.length === 4);
  expect(taken).toEqual(["q2", "q3", "q0", "q1"]);
});

test("one that a dead worker left behind holds the others back until it was sent", async () => {
  await queue(numbered(3));
  await outbox.db.execute(
    sql`update delivery set attempts = 1, lease_until = now() + interval '60 s', due_at = now() + interval '60 s'
      where subject = 'q0'`,
  );
  start(2);
  await queue(["to alice"], { individualId: outbox.ids.alice });
  await until("another message", () => taken.length === 1);
  await outbox.db.execute(sql`update delivery set lease_until = now(), due_at = now() where subject = 'q0'`);
  await until("all", () => taken.length === 4);
  expect(taken).toEqual(["to alice", ...numbered(3)]);
});

test("mail to each recipient is in order, whatever happens to the others", async () => {
  let isFull = true;
  const mails: string[] = [];
  chat = fakeMailing(
    {
      recipients: () => ["a", "b"],
      send: async ({ recipient, message }) => {
        await Bun.sleep(Math.random() * 5);
        if (isFull && recipient === "a") throw new Unavailable("the mailbox is full");
        mails.push(`${recipient} ${message.subject}`);
      },
    },
    { slug: "channel" },
  );
  start(3);
  await queue(numbered(5));
  await until("those of b", () => mails.length === 5);
  expect(mails).toEqual(numbered(5).map((subject) => `b ${subject}`));
  isFull = false;
  await endPauses();
  await until("those of a", () => mails.length === 10);
  expect(mails.slice(5)).toEqual(numbered(5).map((subject) => `a ${subject}`));
});

test("the next of 1,000 waiting messages of a conversation is found by an index", async () => {
  const { incidentId } = outbox.ids;
  await outbox.db.execute(sql`
    insert into delivery (key, task, incident_id, about, plugin_slug, subject, text, queued_at, due_at)
    select 'n/' || n, 't', ${incidentId}::bigint, '[]', 'channel', 'q' || n, 't', now(), now()
    from generate_series(0, 999) n`);
  await outbox.db.execute(sql`analyze delivery`);
  const asked = noteAsked(outbox.db);
  start(2);
  await until("some to be taken", () => taken.length > 60);
  stop.abort();
  await Promise.all(working);
  expect(taken).toEqual(numbered(taken.length));
  const claims = asked.filter(({ text }) => text.includes('"earlier"'));
  const isNext = ({ text }: { text: string }) => text.includes('"delivery"."sequence" >');
  await outbox.db.execute(sql`update delivery set due_at = now() - interval '1 h' where state = 'Queued'`);
  // Most claims follow a message, and read no other one.
  expect(claims.filter(isNext).length).toBeGreaterThan(50);
  expect(await rowsRead(outbox.db, claims.findLast(isNext)!)).toBeLessThan(100);
  // The others compare each message with the first one that waits, and not with all of them.
  const first = claims.find((one) => !isNext(one))!;
  expect(await rowsRead(outbox.db, first)).toBeLessThan(10_000);
});
