import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { Listener, type Subscriber } from "../../../drizzle/connection/listener.ts";
import { createLog } from "../../../platform/log.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database/database.ts";
import { ChallengeWatch, type PendingFacts } from "./watch.ts";

const log = createLog("fatal");
const bucket = { tokens: 5, at: 0 };
const facts: PendingFacts = {
  bound: true,
  scope: null,
  expiresAt: 0,
  authorization: null,
  bucket,
  addressBucket: bucket,
};

let database: TestDatabase;
let listener: Listener;
let watch: ChallengeWatch;
beforeAll(async () => {
  database = await createTestDatabase();
  listener = new Listener(database.url, log);
  watch = new ChallengeWatch(listener);
  await listener.start();
});
afterAll(async () => {
  await listener.stop();
  await database[Symbol.asyncDispose]();
});

describe("a remembered challenge", () => {
  test("was not read before a message that has arrived meanwhile", async () => {
    const { sequence } = watch;
    const heard = watch.next("decided", 10_000).happened;
    const sql = openSql(database.url, { max: 1 });
    await sql`select pg_notify('svc_challenge', 'decided')`;
    expect(await heard).toBe("news");
    await sql.end();
    watch.remember("url", "decided", facts, sequence);
    expect(watch.recall("url")).toBeUndefined();
    watch.remember("url", "decided", facts, watch.sequence);
    expect(watch.recall("url")).toBe(facts);
  });

  test("has a URL of at most 300 characters", () => {
    const [longest, longer] = ["u".repeat(300), "u".repeat(301)];
    watch.remember(longest, "a", facts, watch.sequence);
    watch.remember(longer, "b", facts, watch.sequence);
    expect([watch.recall(longest), watch.recall(longer)]).toEqual([facts, undefined]);
  });

  test("is one of at most 200,000: the oldest one makes room", async () => {
    const subscribers: Subscriber[] = [];
    const full = new ChallengeWatch({ subscribe: (subscriber) => void subscribers.push(subscriber) });
    subscribers[0]!.listening!();
    const remember = (i: number) => full.remember(`url ${i}`, `key ${i}`, facts, full.sequence);
    const known = (i: number) => full.recall(`url ${i}`) !== undefined;
    for (let i = 1; i <= 200_000; i += 1) remember(i);
    remember(200_000);
    expect([known(1), known(200_000)]).toEqual([true, true]);
    remember(200_001);
    expect([known(1), known(2), known(200_001)]).toEqual([false, true, true]);
  });
});

describe("a wait", () => {
  test("ends at once when its challenge is decided, and no other does", async () => {
    const [mine, other] = [watch.next("mine", 10_000), watch.next("other", 10_000)];
    watch.decided("mine");
    expect(await mine.happened).toBe("news");
    other.cancel();
    expect(await other.happened).toBe("timeout");
  });

  test("ends when its client is gone, or at once if it was gone before", async () => {
    const client = new AbortController();
    const wait = watch.next("key", 10_000, client.signal);
    client.abort();
    expect(await wait.happened).toBe("gone");
    expect(await watch.next("key", 10_000, client.signal).happened).toBe("gone");
  });

  test("ends after a second without a listening connection, to look again", async () => {
    const deaf = new ChallengeWatch({ subscribe: () => {} });
    expect(await deaf.next("key", 2000).happened).toBe("news");
  });
});
