import { describe, expect, test } from "bun:test";
import { TestBrowser } from "../../tests/support/browser.ts";
import { decide, newChallenge, poll, startTestServer, type TestServer } from "../../tests/support/server.ts";

describe("limits", () => {
  test("a challenge polled too fast: 429 with Retry-After, then all is well", async () => {
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
    // A decision is delivered however fast it is asked for.
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

  test("polls without the right verifier are slowed down, and do not slow down the one with it", async () => {
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
    ["a bound client's against the address from which it was looked up", false, 20],
    ["a legacy client's against the address that it has now", true, 6],
  ])("polls answered from memory count: %s", async (_, legacy, slowed) => {
    await using server = await behindProxy({ ratePoll: 60, challengeLegacy: "allow" });
    const [before, now] = [from("192.0.2.1"), from("192.0.2.2")];
    const challenges = await Promise.all(Array.from({ length: 14 }, () => newChallenge(server, { legacy })));
    for (const challenge of challenges) {
      expect((await poll(server, challenge, before)).http).toBe(200);
      expect(server.watch.recall(server.url + challenge.pollPath)).toBeDefined();
    }
    // An address may send 50 at once: the 14 above and these 56 are 20 too many for one, these alone 6.
    const again = await Promise.all(
      challenges.flatMap((challenge) => Array.from({ length: 4 }, () => poll(server, challenge, now))),
    );
    expect(again.filter(({ http }) => http === 429)).toHaveLength(slowed);
  });

  test("an address that polls too much is slowed down, whatever it polls", async () => {
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

  test("a browser that sets out for the issuer again and again is slowed down", async () => {
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

  test("an address that asks for too many challenges is refused; another user name or header does not help", async () => {
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

/** A server behind a trusted proxy at 127.0.0.1, and requests as they come through it. */
async function behindProxy(overrides = {}): Promise<TestServer> {
  return startTestServer({ proxyHeaders: true, ...overrides });
}
const from = (address: string) => ({ headers: { "x-forwarded-for": address } });

describe("legacy clients", () => {
  test("same_ip: another address polls, opens and approves nothing", async () => {
    await using server = await behindProxy();
    const challenge = await newChallenge(server, { legacy: true, ...from("192.0.2.1") });
    expect((await poll(server, challenge, from("192.0.2.1"))).body).toEqual({ status: "pending" });
    // Remembered by now, and memory is as strict.
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

  test("same_ip: 127.0.0.1 and ::1 are one, and so is an IPv6 /64", async () => {
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

  test("allow: from anywhere", async () => {
    await using server = await behindProxy({ challengeLegacy: "allow" });
    const challenge = await newChallenge(server, { legacy: true, ...from("192.0.2.1") });
    const browser = new TestBrowser(from("192.0.2.2").headers);
    expect((await decide(challenge, "approve", browser)).status).toBe(303);
    expect((await poll(server, challenge, from("192.0.2.3"))).body.status).toBe("success");
  });

  test("deny: not at all, and a bound client as ever", async () => {
    await using server = await behindProxy({ challengeLegacy: "deny" });
    const refused = await server.fetch("/noauth/v1/challenge_generator/alice");
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ status: "forbidden" });
    expect((await poll(server, await newChallenge(server))).body.status).toBe("pending");
  });

  test("deny: also for a challenge that was made before", async () => {
    await using before = await startTestServer();
    await using after = await before.another({ challengeLegacy: "deny" });
    const challenge = await newChallenge(before, { legacy: true });
    expect((await poll(after, challenge)).body).toEqual({ status: "unknown" });
    expect((await after.fetch(new URL(challenge.challengeUrl).pathname)).status).toBe(404);
  });

  test("a bound client's browser may be elsewhere", async () => {
    await using server = await behindProxy();
    const challenge = await newChallenge(server, from("192.0.2.1"));
    const browser = new TestBrowser(from("198.51.100.7").headers);
    const { url, text } = await browser.open(challenge.challengeUrl);
    expect(text).toContain("192.0.2.1");
    expect((await browser.submit(url, text, { decision: "approve" })).status).toBe(303);
    expect((await poll(server, challenge, from("203.0.113.5"))).body.status).toBe("success");
  });

  test("X-Forwarded-For says nothing unless proxies are trusted", async () => {
    await using server = await startTestServer();
    const challenge = await newChallenge(server, { legacy: true, ...from("192.0.2.1") });
    expect((await poll(server, challenge, from("192.0.2.2"))).body).toEqual({ status: "pending" });
    const { text } = await new TestBrowser(from("192.0.2.9").headers).open(challenge.challengeUrl);
    expect(text).toContain("127.0.0.1");
    expect(text).not.toContain("192.0.2.1");
  });

  test("what stands left of the client's own address is its invention", async () => {
    await using server = await behindProxy();
    const challenge = await newChallenge(server, { legacy: true, ...from("192.0.2.1") });
    expect((await poll(server, challenge, from("192.0.2.1, 198.51.100.1"))).body).toEqual({
      status: "unknown",
    });
    expect((await poll(server, challenge, from("198.51.100.1, 192.0.2.1"))).body).toEqual({
      status: "pending",
    });
  });
});
