import { describe, expect, test } from "bun:test";
import { createChallenge } from "../../core/auth/challenge/create.ts";
import { KnownChallenges, OpenChallenges } from "../../core/auth/challenge/limits.ts";
import { challenge as challengeTable } from "../../drizzle/schema/index.ts";
import { TooManyRequests } from "../../platform/errors.ts";
import { createLog } from "../../platform/log.ts";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import {
  decide,
  newChallenge,
  poll,
  startTestServer,
  type TestServer,
} from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

describe("limits", () => {
  test("a challenge polled too fast gets 429 with Retry-After, then works again", async () => {
    await using server = await startTestServer();
    const challenge = await newChallenge(server, { legacy: true });
    const answers = await Promise.all(Array.from({ length: 20 }, () => poll(server, challenge)));
    const slowed = answers.filter(({ http }) => http === 429);
    expect(slowed).toHaveLength(15);
    for (const { body, headers } of slowed) {
      expect(body).toEqual({ status: "pending" });
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    }
    const other = await newChallenge(server, { legacy: true });
    expect((await poll(server, other)).http).toBe(200);
    server.clock.advance(2);
    expect((await poll(server, challenge)).http).toBe(200);
    // A decision is delivered, however fast the client polls.
    for (let i = 0; i < 10; i += 1) await poll(server, challenge);
    await decide(challenge, "approve");
    expect((await poll(server, challenge)).body.status).toBe("success");
  });

  test("a held poll counts against its challenge's limit", async () => {
    await using server = await startTestServer();
    const challenge = await newChallenge(server);
    const wait = { headers: { prefer: "wait=1" } };
    const answers = await Promise.all(Array.from({ length: 8 }, () => poll(server, challenge, wait)));
    expect(answers.filter(({ http }) => http === 200)).toHaveLength(5);
    expect(answers.filter(({ http }) => http === 429)).toHaveLength(3);
  });

  test("a challenge that is polled without pause is not looked up each time", async () => {
    await using server = await startTestServer({ ratePoll: 60 });
    const challenge = await newChallenge(server);
    const now = { headers: { prefer: "wait=0" } };
    await Promise.all(Array.from({ length: 50 }, () => poll(server, challenge, now)));
    await decide(challenge, "approve");
    expect((await poll(server, challenge, now)).http).toBe(429);
    server.clock.advance(1);
    expect((await poll(server, challenge, now)).body.status).toBe("success");
  });

  test("polls without the right verifier are limited, without limiting the right one", async () => {
    await using server = await startTestServer();
    const challenge = await newChallenge(server);
    const stranger = { ...challenge, verifier: "w".repeat(43) };
    const answers = await Promise.all(Array.from({ length: 20 }, () => poll(server, stranger)));
    const slowed = answers.filter(({ http }) => http === 429);
    expect(slowed).toHaveLength(15);
    for (const { body, headers } of slowed) {
      expect(body).toEqual({ status: "pending" });
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    }
    const own = await Promise.all(Array.from({ length: 5 }, () => poll(server, challenge)));
    expect(own.map(({ http }) => http)).toEqual([200, 200, 200, 200, 200]);
  });

  test.each([
    ["a bound client's, for the address that looked it up", false, 20],
    ["a legacy client's, for its current address", true, 6],
  ])("polls answered from memory count: %s", async (_, legacy, slowed) => {
    await using server = await behindProxy({ ratePoll: 60, challengeLegacy: "allow" });
    const [before, now] = [from("192.0.2.1"), from("192.0.2.2")];
    const challenges = await Promise.all(Array.from({ length: 14 }, () => newChallenge(server, { legacy })));
    for (const challenge of challenges) {
      expect((await poll(server, challenge, before)).http).toBe(200);
      expect(server.watch.recall(server.url + challenge.pollPath)).toBeDefined();
    }
    // An address may burst 50: the 14 above and these 56 exceed one address by 20; these alone exceed it by 6.
    const again = await Promise.all(
      challenges.flatMap((challenge) => Array.from({ length: 4 }, () => poll(server, challenge, now))),
    );
    expect(again.filter(({ http }) => http === 429)).toHaveLength(slowed);
  });

  test("an address that polls too much is limited, whatever it polls", async () => {
    await using server = await startTestServer({ ratePoll: 60 });
    const answers = await Promise.all(
      Array.from({ length: 80 }, (_, i) =>
        server.fetch(`/noauth/v1/challenge_poller/${"a".repeat(41)}${i + 10}`),
      ),
    );
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(50);
    const slowed = answers.filter(({ status }) => status === 429);
    expect(slowed).toHaveLength(30);
    expect(await slowed[0]!.json()).toEqual({ status: "pending" });
    expect(Number(slowed[0]!.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("a browser that starts single sign-on again and again is limited", async () => {
    await using server = await startTestServer();
    const browser = new TestBrowser();
    const first = await browser.request((await newChallenge(server)).challengeUrl);
    const url = new URL(first.headers.get("location")!, server.url).href;
    const visits = await Promise.all(Array.from({ length: 15 }, () => browser.request(url)));
    expect(visits.filter(({ status }) => status === 303)).toHaveLength(10);
    expect(visits.filter(({ status }) => status === 429)).toHaveLength(5);
    server.clock.advance(6);
    expect((await browser.request(url)).status).toBe(303);
  });

  test("an address that opens too many challenges is limited; other user names or headers do not help", async () => {
    await using server = await startTestServer({ rateGenerate: 20 });
    const ask = (i: number) =>
      server.fetch(`/noauth/v1/challenge_generator/user${i}`, {
        headers: {
          "user-agent": `agent ${i}`,
          "x-forwarded-for": `198.51.100.${i}`,
          cookie: `svc_session=${i}`,
        },
      });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(i)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.headers.get("retry-after")).toBe("3");
    expect(await refused.json()).toMatchObject({ status: "too_many_requests" });
    server.clock.advance(3);
    expect((await ask(99)).status).toBe(200);
  });
});

const ask = (server: TestServer, user: string, headers: Record<string, string> = {}) =>
  server.fetch(`/noauth/v1/challenge_generator/${encodeURIComponent(user)}`, { headers });

describe("one flooder does not lock out others at the same address", () => {
  test("one user name has a fifth of its address's limit, in whatever spelling", async () => {
    await using server = await startTestServer();
    const spellings = ["mallory", "Mallory", "MALLORY@example.com", "mallory@EXAMPLE.com"];
    const flood = await Promise.all(
      Array.from({ length: 100 }, (_, i) => ask(server, spellings[i % spellings.length]!)),
    );
    expect(flood.filter(({ status }) => status === 200)).toHaveLength(30);
    expect(flood.find(({ status }) => status === 429)!.headers.get("retry-after")).toBe("1");
    const others = await Promise.all(Array.from({ length: 100 }, (_, i) => ask(server, `user${i}`)));
    expect(others.filter(({ status }) => status === 200)).toHaveLength(100);
  });

  test("invalid user names share one limit", async () => {
    await using server = await startTestServer();
    const flood = await Promise.all(Array.from({ length: 100 }, (_, i) => ask(server, `a b${i}@@`)));
    expect(flood.filter(({ status }) => status === 400)).toHaveLength(30);
    expect((await ask(server, "alice")).status).toBe(200);
  });

  test("a person at a dozen terminals stays below the limit", async () => {
    await using server = await startTestServer();
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(server, "alice")));
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
  });

  test.each([
    ["Sec-Fetch-Site: cross-site", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }],
    ["Sec-Fetch-Site: same-site", { "sec-fetch-site": "same-site" }],
    ["Origin", { origin: "https://evil.example" }],
    ["Origin: null", { origin: "null" }],
    ["Referer", { referer: "http://evil.example/page" }],
  ])("a request that another site triggers is refused and not counted: %s", async (_, headers) => {
    await using server = await startTestServer({ rateGenerate: 1, ratePoll: 1 });
    const flood = await Promise.all(Array.from({ length: 100 }, () => ask(server, "alice", headers)));
    expect(flood.map(({ status }) => status)).toEqual(Array(100).fill(403));
    expect(await flood[0]!.json()).toMatchObject({ status: "forbidden" });
    expect(await server.db.$count(challengeTable)).toBe(0);
    const unknown = { headers };
    const path = `/noauth/v1/challenge_poller/${"a".repeat(43)}`;
    const polls = await Promise.all(Array.from({ length: 100 }, () => server.fetch(path, unknown)));
    expect(polls.map(({ status }) => status)).toEqual(Array(100).fill(403));
    // Each limit still has its full burst.
    for (let i = 0; i < 5; i += 1) expect((await ask(server, "alice")).status).toBe(200);
    expect((await server.fetch(path)).status).toBe(404);
  });

  test("an address typed into the browser, or a request of our own pages, is accepted", async () => {
    await using server = await startTestServer();
    expect((await ask(server, "alice", { "sec-fetch-site": "none" })).status).toBe(200);
    const ours = { "sec-fetch-site": "same-origin", origin: server.url, referer: `${server.url}/x` };
    expect((await ask(server, "alice", ours)).status).toBe(200);
  });

  test("polls with made-up tokens do not limit clients that wait for approval", async () => {
    await using server = await startTestServer({ ratePoll: 60 });
    const [bound, legacy] = [await newChallenge(server), await newChallenge(server, { legacy: true })];
    const flood = await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        server.fetch(`/noauth/v1/challenge_poller/${"a".repeat(40)}${i + 100}`),
      ),
    );
    expect(flood.filter(({ status }) => status === 429)).toHaveLength(250);
    expect((await poll(server, legacy)).http).toBe(200);
    expect((await poll(server, bound)).http).toBe(200);
    await decide(bound, "approve");
    expect((await poll(server, bound)).body.status).toBe("success");
  });

  test("polls of unknown tokens at another process do not limit a challenge that it learns of later", async () => {
    await using server = await startTestServer({ ratePoll: 60 });
    await using other = await server.another();
    const flood = () =>
      Promise.all(
        Array.from({ length: 60 }, (_, i) =>
          other.fetch(`/noauth/v1/challenge_poller/${"a".repeat(40)}${i + 100}`),
        ),
      );
    await flood();
    const challenge = await newChallenge(server);
    await until("the other process to hear of it", async () => (await poll(other, challenge)).http === 200);
  });

  test("polls beyond a challenge's limit do not count against the address", async () => {
    await using server = await startTestServer({ ratePoll: 60 });
    const [own, other] = [await newChallenge(server), await newChallenge(server)];
    for (const wait of [{}, { headers: { prefer: "wait=0" } }]) {
      const flood = await Promise.all(Array.from({ length: 100 }, () => poll(server, own, wait)));
      expect(flood.filter(({ http }) => http === 200).length).toBeLessThanOrEqual(5);
    }
    const answers = await Promise.all(Array.from({ length: 5 }, () => poll(server, other)));
    expect(answers.map(({ http }) => http)).toEqual([200, 200, 200, 200, 200]);
  });
});

describe("open sign-in requests", () => {
  const limits = { inTotal: 7, ofAddress: 5, ofUser: 2 };
  /**
   * Returns a function that opens a request for a user at an address.
   * @returns whether it was accepted
   */
  const opener = (server: TestServer) => {
    const open = new OpenChallenges(limits);
    const known = new KnownChallenges(server.clock, server.config.challengeLifetime);
    const context = { ...server, log: createLog("silent"), open, known };
    return (userName: string, address: string) =>
      createChallenge(context, { userName, address, client: "test" }).then(
        () => true,
        (error: unknown) => {
          if (!(error instanceof TooManyRequests)) throw error;
          expect(error.retryAfter).toBe(10);
          return false;
        },
      );
  };

  test("are limited per user and address, per address, and in total", async () => {
    await using server = await startTestServer();
    const open = opener(server);
    const [here, there, elsewhere] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    expect(await open("alice", here)).toBeTrue();
    expect(await open("ALICE@example.com", here)).toBeTrue();
    expect(await open("alice", here)).toBeFalse();
    for (const user of ["bob", "carol", "dave"]) expect(await open(user, here)).toBeTrue();
    expect(await open("erin", here)).toBeFalse();
    expect(await open("alice", there)).toBeTrue();
    expect(await open("bob", there)).toBeTrue();
    expect(await open("alice", elsewhere)).toBeFalse();
    expect(await server.db.$count(challengeTable)).toBe(7);
  });

  test("count across all processes, until they expire or are denied", async () => {
    await using server = await startTestServer();
    const [open, another] = [opener(server), opener(server)];
    expect(await open("alice", "192.0.2.1")).toBeTrue();
    expect(await open("alice", "192.0.2.1")).toBeTrue();
    expect(await another("alice", "192.0.2.1")).toBeFalse();
    await server.db.update(challengeTable).set({ deniedAt: server.clock.now(), boundAt: server.clock.now() });
    server.clock.advance(1);
    expect(await another("alice", "192.0.2.1")).toBeTrue();
    expect(await another("alice", "192.0.2.1")).toBeTrue();
    expect(await another("alice", "192.0.2.1")).toBeFalse();
    server.clock.advance(server.config.challengeLifetime);
    expect(await open("alice", "192.0.2.1")).toBeTrue();
  });

  test("of an IPv6 /64 count as one address", async () => {
    await using server = await startTestServer();
    const open = opener(server);
    for (let n = 1; n <= 6; n += 1) expect(await open(`user${n}`, `2001:db8:1:2::${n}`)).toBe(n <= 5);
  });
});

/** A server behind a trusted proxy at 127.0.0.1, which all requests come through. */
async function behindProxy(overrides = {}): Promise<TestServer> {
  return startTestServer({ proxyHeaders: true, ...overrides });
}
const from = (address: string) => ({ headers: { "x-forwarded-for": address } });

describe("legacy clients", () => {
  test("same_ip: another address polls, opens and approves nothing", async () => {
    await using server = await behindProxy();
    const challenge = await newChallenge(server, { legacy: true, ...from("192.0.2.1") });
    expect((await poll(server, challenge, from("192.0.2.1"))).body).toEqual({ status: "pending" });
    // Cached by now, and the cache is as strict.
    expect(await poll(server, challenge, from("192.0.2.2"))).toMatchObject({
      http: 404,
      body: { status: "unknown" },
    });
    expect((await new TestBrowser(from("192.0.2.2").headers).open(challenge.challengeUrl)).status).toBe(404);

    const browser = new TestBrowser(from("192.0.2.1").headers);
    const { url, text } = await browser.open(challenge.challengeUrl);
    expect(text).toContain("shows no code");
    const elsewhere = await browser.submit(url, text, { decision: "approve" }, from("192.0.2.2").headers);
    expect(elsewhere.status).toBe(404);
    expect((await browser.submit(url, text, { decision: "approve" })).status).toBe(303);
    expect((await poll(server, challenge, from("192.0.2.2"))).body).toEqual({ status: "unknown" });
    expect((await poll(server, challenge, from("192.0.2.1"))).body.status).toBe("success");
  });

  test("same_ip: 127.0.0.1 and ::1 are the same, and so is an IPv6 /64", async () => {
    await using server = await behindProxy();
    for (const [asked, polled, status] of [
      ["127.0.0.1", "::1", "pending"],
      ["2001:db8:1:2::3", "2001:db8:1:2:ffff::4", "pending"],
      ["2001:db8:1:2::3", "2001:db8:1:3::3", "unknown"],
      ["::ffff:192.0.2.1", "192.0.2.1", "pending"],
    ] as const) {
      const challenge = await newChallenge(server, { legacy: true, ...from(asked) });
      expect((await poll(server, challenge, from(polled))).body.status).toBe(status);
    }
  });

  test("allow: from any address", async () => {
    await using server = await behindProxy({ challengeLegacy: "allow" });
    const challenge = await newChallenge(server, { legacy: true, ...from("192.0.2.1") });
    const browser = new TestBrowser(from("192.0.2.2").headers);
    expect((await decide(challenge, "approve", browser)).status).toBe(303);
    expect((await poll(server, challenge, from("192.0.2.3"))).body.status).toBe("success");
  });

  test("deny: legacy clients are refused, bound clients are not", async () => {
    await using server = await behindProxy({ challengeLegacy: "deny" });
    const refused = await server.fetch("/noauth/v1/challenge_generator/alice");
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ status: "forbidden" });
    expect((await poll(server, await newChallenge(server))).body.status).toBe("pending");
  });

  test("deny: also refuses a challenge created before", async () => {
    await using before = await startTestServer();
    await using after = await before.another({ challengeLegacy: "deny" });
    const challenge = await newChallenge(before, { legacy: true });
    expect((await poll(after, challenge)).body).toEqual({ status: "unknown" });
    expect((await after.fetch(new URL(challenge.challengeUrl).pathname)).status).toBe(404);
  });

  test("a bound client's browser may have another address", async () => {
    await using server = await behindProxy();
    const challenge = await newChallenge(server, from("192.0.2.1"));
    const browser = new TestBrowser(from("198.51.100.7").headers);
    const { url, text } = await browser.open(challenge.challengeUrl);
    expect(text).toContain("192.0.2.1");
    expect((await browser.submit(url, text, { decision: "approve" })).status).toBe(303);
    expect((await poll(server, challenge, from("203.0.113.5"))).body.status).toBe("success");
  });

  test("X-Forwarded-For is ignored unless proxies are trusted", async () => {
    await using server = await startTestServer();
    const challenge = await newChallenge(server, { legacy: true, ...from("192.0.2.1") });
    expect((await poll(server, challenge, from("192.0.2.2"))).body).toEqual({ status: "pending" });
    const { text } = await new TestBrowser(from("192.0.2.9").headers).open(challenge.challengeUrl);
    expect(text).toContain("127.0.0.1");
    expect(text).not.toContain("192.0.2.1");
  });
});
