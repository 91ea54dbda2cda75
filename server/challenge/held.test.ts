import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import { openSql } from "../../drizzle/client.ts";
import {
  decide,
  newChallenge,
  poll,
  pollUntilRemembered,
  startTestServer,
  type TestChallenge,
  type TestServer,
} from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

// Two servers on one database, like two processes: a decision at one must reach a client waiting at the other.
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

/** Polls, and returns when the server starts to wait: with the longest wait, and the promise of the answer. */
async function hold(server: TestServer, challenge: TestChallenge, init: RequestInit = wait) {
  using next = spyOn(server.watch, "next");
  const answer = poll(server, challenge, init);
  answer.catch(() => {});
  await until("the poll to be held", () => next.mock.calls.length > 0);
  const { happened } = next.mock.results[0]!.value as ReturnType<TestServer["watch"]["next"]>;
  return { answer, milliseconds: next.mock.calls[0]![1], happened };
}

describe("a held poll", () => {
  test("is answered as soon as another process approves", async () => {
    const challenge = await newChallenge(first);
    const { answer, happened } = await hold(second, challenge);
    await decide(challenge, "approve");
    expect(await happened).toBe("news");
    expect((await answer).body.status).toBe("success");
  });

  test("is answered when the challenge is denied", async () => {
    const challenge = await newChallenge(first);
    const { answer } = await hold(second, challenge);
    await decide(challenge, "deny");
    expect(await answer).toMatchObject({ http: 403, body: { status: "denied" } });
  });

  test("ends after the requested time", async () => {
    const challenge = await newChallenge(first);
    const answer = await poll(second, challenge, { headers: { prefer: "respond-async, wait=1" } });
    expect(answer).toMatchObject({ http: 200, body: { status: "pending" } });
  });

  test("is held for at most 30 s, whatever is requested", async () => {
    const challenge = await newChallenge(first);
    const { answer, milliseconds } = await hold(second, challenge, { headers: { prefer: "wait=100" } });
    // Less the time of the lookup.
    expect(milliseconds).toBeWithin(10_000, 30_000.1);
    await decide(challenge, "deny");
    await answer;
  });

  test("ends when its client disconnects: no further lookups", async () => {
    const challenge = await newChallenge(first);
    const client = new AbortController();
    const { answer, happened } = await hold(second, challenge, { ...wait, signal: client.signal });
    using next = spyOn(second.watch, "next");
    client.abort();
    await expect(answer).rejects.toThrow();
    expect(await happened).toBe("gone");
    // Lets pending work finish.
    await second.db.execute(sql`select 1`);
    expect(next).not.toHaveBeenCalled();
  });

  test("is answered by a decision in the same process, without a database notification", async () => {
    await using deaf = await startTestServer();
    await deaf.db.execute(sql`alter table challenge disable trigger user`);
    const challenge = await newChallenge(deaf);
    const { answer, happened } = await hold(deaf, challenge);
    await decide(challenge, "approve");
    expect(await happened).toBe("news");
    expect((await answer).body.status).toBe("success");
  });

  test("is not held for a legacy client, nor without the right verifier", async () => {
    const legacy = await newChallenge(first, { legacy: true });
    expect(await poll(first, legacy, wait)).toMatchObject({ body: { status: "pending" } });
    const bound = await newChallenge(first);
    expect(await poll(first, { ...bound, verifier: "a".repeat(43) }, wait)).toMatchObject({
      body: { status: "pending" },
    });
  });

  test("ends for the oldest of a client's connections; the token goes to one that is still open", async () => {
    const challenge = await newChallenge(first);
    const oldest = await hold(second, challenge);
    const middle = await hold(second, challenge);
    const newest = await hold(second, challenge);
    expect((await oldest.answer).body).toEqual({ status: "pending" });
    await decide(challenge, "approve");
    const answers = [(await middle.answer).body.status, (await newest.answer).body.status];
    expect(answers).toContain("success");
  });

  test("ends when the challenge expires", async () => {
    await using short = await startTestServer({ challengeLifetime: 1 });
    const challenge = await newChallenge(short);
    const { answer } = await hold(short, challenge);
    short.clock.advance(1);
    expect(await answer).toMatchObject({ http: 410, body: { status: "expired" } });
  });

  test("is answered when the server stops", async () => {
    const third = await first.another();
    const challenge = await newChallenge(first);
    const { answer } = await hold(third, challenge);
    await third.watch.stop();
    expect(await answer).toMatchObject({ http: 200, body: { status: "pending" } });
    await third[Symbol.asyncDispose]();
  });
});

describe("the cache", () => {
  test("forgets a challenge that another process decides", async () => {
    const challenge = await newChallenge(first, { legacy: true });
    await pollUntilRemembered(second, challenge);
    await decide(challenge, "approve");
    await until("the decision to be heard", async () => {
      const { body } = await poll(second, challenge);
      return body.status === "success";
    });
  });

  test("does not answer a poll whose URL has something after the token", async () => {
    const challenge = await newChallenge(first);
    const { pollPath, verifier } = challenge;
    for (const path of [`${pollPath}?x=1`, `${pollPath}/`]) {
      await second.fetch(path, { headers: { authorization: `Challenge ${verifier}` } });
      expect([path, second.watch.recall(second.url + path)]).toEqual([path, undefined]);
    }
    await pollUntilRemembered(second, challenge);
  });

  test("is cleared, and held polls still end, when the LISTEN connection is cut", async () => {
    // Nothing looks this one up later, so it stays forgotten.
    const idle = await newChallenge(first);
    await pollUntilRemembered(second, idle);
    const held = await newChallenge(first);
    const { answer } = await hold(second, held);
    const admin = openSql(first.databaseUrl, { max: 1 });
    const cut = await admin`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'svc listen' and datname = current_database()`;
    expect(cut).toHaveLength(2);
    await admin.end();
    const recalled = () => second.watch.recall(second.url + idle.pollPath);
    await until("it to be forgotten", () => !recalled());
    expect((await decide(held, "approve")).status).toBe(303);
    expect((await answer).body.status).toBe("success");
    // The server listens again.
    await pollUntilRemembered(second, await newChallenge(first));
    expect(recalled()).toBeUndefined();
  });
});

test("an unresponsive database is reported before clients time out, after 30 s", async () => {
  const [challenge, legacy] = [await newChallenge(first), await newChallenge(first, { legacy: true })];
  const started = performance.now();
  await first.db.transaction(async (tx) => {
    await tx.execute(sql`lock table challenge in access exclusive mode`);
    const polls = [poll(first, challenge), poll(first, challenge, wait), poll(first, legacy)];
    const refused = newChallenge(first).catch((error: Error) => error.message);
    expect((await Promise.all(polls)).map(({ http }) => http)).toEqual([503, 503, 503]);
    expect(await refused).toStartWith("no challenge: 503");
  });
  expect(performance.now() - started).toBeLessThan(30_000);
  await decide(challenge, "approve");
  expect((await poll(first, challenge)).body.status).toBe("success");
});
