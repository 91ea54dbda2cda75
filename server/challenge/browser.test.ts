import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { session } from "../../drizzle/schema/index.ts";
import { clicked, TestBrowser } from "../../tests/support/browser/browser.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import {
  decide,
  newChallenge,
  poll,
  rowOf,
  startTestServer,
  type TestServer,
} from "../../tests/support/http/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ rateGenerate: 100_000, ratePoll: 1_000_000 });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  server.issuer.user = "alice@example.com";
});

describe("the way to the approval page", () => {
  test("leads from T through the issuer to a URL without T", async () => {
    const challenge = await newChallenge(server);
    const browser = new TestBrowser();
    const { url, status, text, headers } = await browser.open(challenge.challengeUrl);
    expect(status).toBe(200);
    expect(url).toBe(`${server.url}/approve/${(await rowOf(server, challenge)).id}`);
    expect(text).not.toContain(challenge.token);
    expect(text).toContain(challenge.userCode!);
    for (const fact of ["alice@example.com", "127.0.0.1", "Bun/", "Approve", "Deny"])
      expect(text).toContain(fact);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    const policy = headers.get("content-security-policy")!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(policy).not.toContain("script-src");
    expect(text).not.toMatch(/<script|\son\w+=|style="/i);
  });

  test("no redirect reveals T", async () => {
    const challenge = await newChallenge(server);
    const first = await server.fetch(new URL(challenge.challengeUrl).pathname);
    expect(first.status).toBe(303);
    expect(first.headers.get("referrer-policy")).toBe("no-referrer");
    expect(first.headers.get("cache-control")).toBe("no-store");
    const asked = server.issuer.authorizations.length;
    await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    const query = server.issuer.authorizations[asked]!;
    expect(query.get("state")).toMatch(/^[\w-]{43}$/);
    expect(query.get("code_challenge_method")).toBe("S256");
    expect(query.get("nonce")).toMatch(/^[\w-]{43}$/);
    expect(query.get("login_hint")).toBe("alice@example.com");
    expect(query.toString()).not.toContain(challenge.token);
  });

  test("pages and redirects forbid framing, sniffing and foreign form targets", async () => {
    const browser = new TestBrowser();
    const { challengeUrl } = await newChallenge(server);
    const answers = [
      await browser.request(challengeUrl),
      await browser.open(challengeUrl),
      await server.fetch("/challenge_validator/x"),
      await server.fetch("/sign_in/callback"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([303, 200, 404, 401]);
    for (const { headers } of answers) {
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      const policy = headers.get("content-security-policy")!.split("; ");
      expect(policy).toContain("form-action 'self'");
      expect(policy).toContain("base-uri 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
    }
  });

  test("a signed-in user sees the page at once", async () => {
    const browser = new TestBrowser();
    await browser.open((await newChallenge(server)).challengeUrl);
    const asked = server.issuer.authorizations.length;
    const second = await browser.open((await newChallenge(server)).challengeUrl);
    expect(second.status).toBe(200);
    expect(server.issuer.authorizations).toHaveLength(asked);
  });

  test("signing in changes the session id, and the old id is invalid", async () => {
    const browser = new TestBrowser();
    const { challengeUrl } = await newChallenge(server);
    const host = new URL(server.url).host;
    const first = await browser.request(challengeUrl);
    const planted = browser.cookies.get(host)!.get("svc_session")!;
    await browser.open(new URL(first.headers.get("location")!, server.url).href);
    expect(browser.cookies.get(host)!.get("svc_session")).not.toBe(planted);
    const thief = new TestBrowser({ cookie: `svc_session=${planted}` });
    expect((await thief.request(new URL(first.headers.get("location")!, server.url).href)).status).toBe(404);
  });

  test("cookies are HttpOnly, Lax and valid for the whole site", async () => {
    const { challengeUrl } = await newChallenge(server);
    const response = await server.fetch(new URL(challengeUrl).pathname);
    expect(response.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^svc_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/),
    ]);
  });

  test("over https, cookies are Secure with the __Host- prefix, and so is the token's", async () => {
    await using secure = await startTestServer({ publicUrl: "https://svc.example.com" });
    const challenge = await newChallenge(secure);
    expect(challenge.challengeUrl).toStartWith("https://svc.example.com/challenge_validator/");
    const response = await secure.fetch(new URL(challenge.challengeUrl).pathname);
    expect(response.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-svc_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/),
    ]);
  });
});

describe("the first browser", () => {
  test("binds the challenge: T opens nothing in a second browser", async () => {
    const challenge = await newChallenge(server);
    const { url } = await new TestBrowser().open(challenge.challengeUrl);
    const second = new TestBrowser();
    expect((await second.open(challenge.challengeUrl)).status).toBe(404);
    expect((await second.open(url)).status).toBe(404);
    // Whether it is signed in makes no difference.
    const signedIn = new TestBrowser();
    await signedIn.open((await newChallenge(server)).challengeUrl);
    expect((await signedIn.open(challenge.challengeUrl)).status).toBe(404);
  });

  test("may use T again", async () => {
    const challenge = await newChallenge(server);
    const browser = new TestBrowser();
    await browser.open(challenge.challengeUrl);
    expect((await browser.open(challenge.challengeUrl)).status).toBe(200);
  });

  test("of two at the same time, one gets it", async () => {
    const challenge = await newChallenge(server);
    const path = new URL(challenge.challengeUrl).pathname;
    const before = await server.db.$count(session);
    const visits = await Promise.all(Array.from({ length: 10 }, () => server.fetch(path)));
    expect(visits.filter(({ status }) => status === 303)).toHaveLength(1);
    expect(visits.filter(({ status }) => status === 404)).toHaveLength(9);
    expect(await server.db.$count(session)).toBe(before + 1);
  });

  test("of two tabs, the slower one returns with the cookie of the other", async () => {
    const browser = new TestBrowser();
    const opened = await newChallenge(server);
    const next = await newChallenge(server);
    await browser.request(opened.challengeUrl);
    const { id, sessionHash } = await rowOf(server, opened);
    const signInElsewhere = (tx: Transaction) =>
      tx
        .update(session)
        .set({ idHash: Buffer.alloc(32, 1) })
        .where(eq(session.idHash, sessionHash!));
    const visits = await inTheWay(
      server.db,
      signInElsewhere,
      () => browser.request(`${server.url}/approve/${id}`),
      () => browser.request(next.challengeUrl),
    );
    const answers = visits.map((visit) => (visit as PromiseFulfilledResult<Response>).value);
    expect(answers.map(({ status }) => status)).toEqual([303, 404]);
    expect(answers[0]!.headers.get("location")).toBe(`/approve/${id}`);
  });

  test.each([
    ["HEAD", { method: "HEAD" }],
    ["a prefetch", { headers: { "sec-purpose": "prefetch;prerender" } }],
    ["a prefetch of an older browser", { headers: { purpose: "prefetch" } }],
    ["a prefetch of an old Firefox", { headers: { "x-moz": "prefetch" } }],
    ["a preview of Safari", { headers: { "x-purpose": "preview" } }],
    ["a page made ahead", { headers: { "sec-purpose": "prerender" } }],
  ])("is not bound by %s", async (_, init) => {
    const challenge = await newChallenge(server);
    expect((await server.fetch(new URL(challenge.challengeUrl).pathname, init)).status).toBe(404);
    expect((await rowOf(server, challenge)).boundAt).toBeNull();
    expect((await new TestBrowser().open(challenge.challengeUrl)).status).toBe(200);
  });

  test.each(["", "x", "a".repeat(43), "a".repeat(44), "%00", "%ff", "<script>alert(1)</script>"])(
    "an invalid T of %p shows the page for unknown requests",
    async (token) => {
      const before = await server.db.$count(session);
      const response = await server.fetch(`/challenge_validator/${token}`);
      expect(response.status).toBe(404);
      expect(await response.text()).not.toContain("alert(1)");
      expect(await server.db.$count(session)).toBe(before);
    },
  );

  test("an expired T opens nothing", async () => {
    const challenge = await newChallenge(server);
    server.clock.advance(120);
    expect((await new TestBrowser().open(challenge.challengeUrl)).status).toBe(404);
  });

  test("a GET decides nothing", async () => {
    const challenge = await newChallenge(server);
    const browser = new TestBrowser();
    const { url } = await browser.open(challenge.challengeUrl);
    await browser.open(`${url}?decision=approve&csrf=x`);
    expect(await poll(server, challenge)).toMatchObject({ body: { status: "pending" } });
  });
});

describe("the user", () => {
  test("another user sees why they cannot approve, and may sign in as the right one", async () => {
    const challenge = await newChallenge(server);
    server.issuer.user = "bob@example.com";
    const browser = new TestBrowser();
    const { url, status, text } = await browser.open(challenge.challengeUrl);
    expect(status).toBe(403);
    expect(text).toContain("bob@example.com");
    const csrf = text.match(/name="csrf" value="([^"]+)"/)![1]!;
    const forced = await browser.request(url, {
      method: "POST",
      body: new URLSearchParams({ csrf, decision: "approve" }),
      headers: { origin: server.url },
    });
    expect(forced.status).toBe(403);

    server.issuer.user = "alice@example.com";
    const asked = server.issuer.authorizations.length;
    const next = await browser.submit(url, text, {});
    // Not a redirect: browsers apply the page's `form-action` to it and to the issuer's redirects.
    expect(next.status).toBe(200);
    const [, target = ""] = next.headers.get("refresh")!.match(/^0; url=(.+)$/)!;
    const page = await browser.open(new URL(target, url).href);
    expect(server.issuer.authorizations[asked]!.get("prompt")).toBe("login");
    expect(page.status).toBe(200);
    expect((await browser.submit(page.url, page.text, { decision: "approve" })).status).toBe(303);
    expect((await poll(server, challenge)).body.user).toBe("alice@example.com");
  });

  test.each([
    ["JSON", "application/json", JSON.stringify],
    ["no type", "", (fields: Record<string, string>) => new URLSearchParams(fields).toString()],
    ["text", "text/plain", (fields: Record<string, string>) => new URLSearchParams(fields).toString()],
  ])("a decision that is not a URL-encoded form is refused: %s", async (_, type, write) => {
    server.issuer.user = "alice@example.com";
    const challenge = await newChallenge(server);
    const browser = new TestBrowser();
    const { url, text } = await browser.open(challenge.challengeUrl);
    const csrf = text.match(/name="csrf" value="([^"]+)"/)![1]!;
    const answer = await browser.request(url, {
      method: "POST",
      body: new Blob([write({ csrf, decision: "approve" })]),
      headers: { ...clicked, origin: server.url, ...(type && { "content-type": type }) },
    });
    expect(answer.status).toBe(400);
    expect((await rowOf(server, challenge)).approvedAt).toBeNull();
    expect((await browser.submit(url, text, { decision: "approve" })).status).toBe(303);
  });

  test("a user who signed out in another tab decides nothing in this one", async () => {
    server.issuer.user = "bob@example.com";
    const mine = await newChallenge(server, { user: "bob@example.com" });
    const browser = new TestBrowser();
    const page = await browser.open(mine.challengeUrl);
    const other = await browser.open((await newChallenge(server)).challengeUrl);
    expect((await browser.submit(other.url, other.text, {})).status).toBe(200);
    const late = await browser.submit(page.url, page.text, { decision: "approve" });
    expect(late.status).toBe(403);
    expect(await late.text()).toContain("You are no longer signed in in this browser");
    expect((await rowOf(server, mine)).approvedAt).toBeNull();
  });

  test.each([
    ["alice", "ALICE@Example.COM"],
    ["Alice@EXAMPLE.com", "alice@example.com"],
    ["josé@example.com", "jose\u0301@example.com"],
  ])("requested as %p and signed in as %p is the same user", async (asked, signedIn) => {
    const challenge = await newChallenge(server, { user: asked });
    server.issuer.user = signedIn;
    expect((await decide(challenge, "approve")).status).toBe(303);
    expect((await poll(server, challenge)).body.status).toBe("success");
  });

  test.each([
    ["alice@example.com", "alice@evil.example"],
    ["alice", "alice@other.example"],
    ["mike@example.com", "mi\u212Ae@example.com"],
  ])("requested as %p and signed in as %p is another user", async (asked, signedIn) => {
    const challenge = await newChallenge(server, { user: asked });
    server.issuer.user = signedIn;
    const { text, status } = await new TestBrowser().open(challenge.challengeUrl);
    expect([401, 403]).toContain(status);
    expect(text).not.toContain('value="approve"');
  });

  test("with two users on one challenge, only the one it names is accepted", async () => {
    const challenge = await newChallenge(server);
    server.issuer.user = "bob@example.com";
    const bob = await new TestBrowser().open(challenge.challengeUrl);
    expect(bob.status).toBe(403);
    server.issuer.user = "alice@example.com";
    expect((await new TestBrowser().open(challenge.challengeUrl)).status).toBe(404);
  });

  test("the client's description is escaped", async () => {
    const headers = { "user-agent": `<img src=x onerror=alert(1)>"'&${"x".repeat(500)}` };
    const challenge = await newChallenge(server, { headers });
    const { text } = await new TestBrowser().open(challenge.challengeUrl);
    expect(text).toContain("&lt;img src=x onerror=alert(1)>&quot;'&amp;");
    expect(text).not.toContain("<img");
    expect(text).not.toContain("x".repeat(200));
  });
});
