import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import { openSql } from "../../drizzle/client.ts";
import { decide, newChallenge, poll, startTestServer, type TestServer } from "../../tests/support/server.ts";

// Two processes' worth of server on one database: a decision at one must reach whoever waits at the other.
let first: TestServer;
let second: TestServer;
beforeAll(async () => {
  first = await startTestServer({ rateGenerate: 100_000, ratePoll: 1_000_000 });
  second = await first.another();
});
afterAll(async () => {
  await second[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
});

const wait = { headers: { prefer: "wait=25" } };

/** Whether `promise` is still open after everything that was under way had its turn. */
async function isHeld(promise: Promise<unknown>): Promise<boolean> {
  const none = Symbol();
  await first.db.execute(sql`select 1`);
  return (await Promise.race([promise, Bun.sleep(100).then(() => none)])) === none;
}

describe("a held poll", () => {
  test("is answered at the moment of approval at another process", async () => {
    const challenge = await newChallenge(first);
    const held = poll(second, challenge, wait);
    expect(await isHeld(held)).toBe(true);
    const approved = decide(challenge, "approve").then(() => performance.now());
    const [answer, at] = await Promise.all([
      held.then((body) => ({ ...body, at: performance.now() })),
      approved,
    ]);
    expect(answer.body.status).toBe("success");
    expect(answer.at - at).toBeLessThan(2000);
  });

  test("hears of a refusal too", async () => {
    const challenge = await newChallenge(first);
    const held = poll(second, challenge, wait);
    await decide(challenge, "deny");
    expect(await held).toMatchObject({ http: 403, body: { status: "denied" } });
  });

  test("ends after the time that was asked for", async () => {
    const challenge = await newChallenge(first);
    const answer = await poll(second, challenge, { headers: { prefer: "respond-async, wait=1" } });
    expect(answer).toMatchObject({ http: 200, body: { status: "pending" } });
  });

  test("is held for 30 s at most, whatever is asked for", async () => {
    const challenge = await newChallenge(first);
    using next = spyOn(second.watch, "next");
    const held = poll(second, challenge, { headers: { prefer: "wait=100" } });
    expect(await isHeld(held)).toBe(true);
    expect(next.mock.calls[0]![1]).toBeWithin(29_000, 30_000.1);
    await decide(challenge, "deny");
    await held;
  });

  test("of a client that is gone is over: nobody looks for it any more", async () => {
    const challenge = await newChallenge(first);
    using next = spyOn(second.watch, "next");
    const client = new AbortController();
    const held = poll(second, challenge, { ...wait, signal: client.signal });
    expect(await isHeld(held)).toBe(true);
    client.abort();
    await expect(held).rejects.toThrow();
    const { happened } = next.mock.results[0]!.value as ReturnType<TestServer["watch"]["next"]>;
    expect(await happened).toBe("gone");
    await isHeld(held.catch(() => {}));
    expect(next).toHaveBeenCalledTimes(1);
  });

  test("hears at once of a decision in its own process, without the database's word", async () => {
    await using deaf = await startTestServer();
    await deaf.db.execute(sql`alter table challenge disable trigger user`);
    const challenge = await newChallenge(deaf);
    const held = poll(deaf, challenge, wait);
    expect(await isHeld(held)).toBe(true);
    await decide(challenge, "approve");
    expect(await isHeld(held)).toBe(false);
    expect((await held).body.status).toBe("success");
  });

  test("is not held for a legacy client, nor without the right verifier", async () => {
    const legacy = await newChallenge(first, { legacy: true });
    expect(await poll(first, legacy, wait)).toMatchObject({ body: { status: "pending" } });
    const bound = await newChallenge(first);
    expect(await poll(first, { ...bound, verifier: "a".repeat(43) }, wait)).toMatchObject({
      body: { status: "pending" },
    });
  });

  test("of a client that came back ends the oldest, and the token goes to one that is still there", async () => {
    const challenge = await newChallenge(first);
    const oldest = poll(second, challenge, wait);
    await isHeld(oldest);
    const middle = poll(second, challenge, wait);
    await isHeld(middle);
    const newest = poll(second, challenge, wait);
    expect((await oldest).body).toEqual({ status: "pending" });
    await decide(challenge, "approve");
    const answers = [(await middle).body.status, (await newest).body.status];
    expect(answers).toContain("success");
  });

  test("ends at the end of the lifetime", async () => {
    await using short = await startTestServer({ challengeLifetime: 1 });
    const challenge = await newChallenge(short);
    const held = poll(short, challenge, wait);
    await isHeld(held);
    short.clock.advance(1);
    expect(await held).toMatchObject({ http: 410, body: { status: "expired" } });
  });

  test("is answered when the server stops", async () => {
    const third = await first.another();
    const challenge = await newChallenge(first);
    const held = poll(third, challenge, wait);
    await isHeld(held);
    await third.watch.stop();
    expect(await held).toMatchObject({ http: 200, body: { status: "pending" } });
    await third[Symbol.asyncDispose]();
  });
});

describe("what is remembered", () => {
  test("is forgotten when another process decides", async () => {
    const challenge = await newChallenge(first, { legacy: true });
    expect((await poll(second, challenge)).body.status).toBe("pending");
    expect(second.watch.recall(second.url + challenge.pollPath)).toBeDefined();
    await decide(challenge, "approve");
    const until = performance.now() + 5000;
    let answer = await poll(second, challenge);
    while (answer.body.status === "pending" && performance.now() < until) {
      await Bun.sleep(5);
      answer = await poll(second, challenge);
    }
    expect(answer.body.status).toBe("success");
  });

  test("is no poll whose URL does not end in the token", async () => {
    const { pollPath, verifier } = await newChallenge(first);
    for (const [path, remembered] of [
      [`${pollPath}?x=1`, false],
      [`${pollPath}/`, false],
      [pollPath, true],
    ] as const) {
      await second.fetch(path, { headers: { authorization: `Challenge ${verifier}` } });
      expect([path, second.watch.recall(second.url + path) !== undefined]).toEqual([path, remembered]);
    }
  });

  test("is forgotten, and held polls still end, when the connection that listens is cut", async () => {
    const challenge = await newChallenge(first);
    await poll(second, challenge);
    expect(second.watch.recall(second.url + challenge.pollPath)).toBeDefined();
    const held = poll(second, challenge, wait);
    await isHeld(held);
    const admin = openSql(first.databaseUrl, { max: 1 });
    const cut = await admin`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'svc listen' and datname = current_database()`;
    expect(cut).toHaveLength(2);
    await admin.end();
    const until = performance.now() + 5000;
    while (second.watch.recall(second.url + challenge.pollPath) && performance.now() < until)
      await Bun.sleep(10);
    expect(second.watch.recall(second.url + challenge.pollPath)).toBeUndefined();
    expect((await decide(challenge, "approve")).status).toBe(303);
    expect((await held).body.status).toBe("success");
  });
});
