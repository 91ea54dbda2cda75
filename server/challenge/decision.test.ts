import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import {
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

describe("the decision", () => {
  async function opened() {
    const challenge = await newChallenge(server);
    const browser = new TestBrowser();
    const { url, text } = await browser.open(challenge.challengeUrl);
    return { challenge, browser, url, text };
  }

  test("approve: the page confirms it, and the terminal gets its token", async () => {
    const { challenge, browser, url, text } = await opened();
    const response = await browser.submit(url, text, { decision: "approve" });
    expect(response.status).toBe(303);
    expect((await browser.open(url)).text).toContain("Approved");
    expect((await poll(server, challenge)).body.status).toBe("success");
    expect((await browser.open(url)).text).toContain("is signed in");
  });

  test("a second decision changes nothing: 409 with the result", async () => {
    for (const [first, second, word] of [
      ["approve", "approve", "Approved"],
      ["approve", "deny", "Approved"],
      ["deny", "approve", "Denied"],
    ] as const) {
      const { challenge, browser, url, text } = await opened();
      await browser.submit(url, text, { decision: first });
      const again = await browser.submit(url, text, { decision: second });
      expect(again.status).toBe(409);
      expect(await again.text()).toContain(word);
      const status = first === "approve" ? "success" : "denied";
      expect((await poll(server, challenge)).body.status).toBe(status);
    }
  });

  test("of two concurrent decisions, one counts", async () => {
    const { browser, url, text } = await opened();
    const answers = await Promise.all(
      (["approve", "deny", "approve", "deny"] as const).map((decision) =>
        browser.submit(url, text, { decision }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 409, 409, 409]);
  });

  test("is too late at exactly 120 s", async () => {
    const { challenge, browser, url, text } = await opened();
    server.clock.advance(119.999);
    expect((await rowOf(server, challenge)).approvedAt).toBeNull();
    server.clock.advance(0.001);
    const late = await browser.submit(url, text, { decision: "approve" });
    expect(late.status).toBe(409);
    expect(await late.text()).toContain("Too late");
    expect(await poll(server, challenge)).toMatchObject({ http: 410 });
  });

  test("without the cookie is refused", async () => {
    const { challenge, url, text } = await opened();
    expect((await new TestBrowser().submit(url, text, { decision: "approve" })).status).toBe(404);
    expect((await poll(server, challenge)).body.status).toBe("pending");
  });

  test("with a CSRF token of another session or challenge, or none, is refused", async () => {
    const mine = await opened();
    const theirs = await opened();
    const other = await newChallenge(server);
    const second = await mine.browser.open(other.challengeUrl);
    const csrfOf = (text: string) => text.match(/name="csrf" value="([^"]+)"/)![1]!;
    for (const csrf of [csrfOf(theirs.text), csrfOf(second.text), "", "a".repeat(43)]) {
      const answer = await mine.browser.submit(mine.url, mine.text, { decision: "approve", csrf });
      expect(answer.status).toBe(403);
    }
    expect((await poll(server, mine.challenge)).body.status).toBe("pending");
  });

  test.each([
    [{ origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
    [{ origin: "https://evil.example", "sec-fetch-site": "same-origin" }],
    [{ origin: "null", "sec-fetch-site": "cross-site" }],
    [{ origin: "null", "sec-fetch-site": "same-site" }],
    [{ origin: "null", "sec-fetch-site": "none" }],
    [{ origin: "OWN", "sec-fetch-site": "same-site" }],
  ])("from another site is refused: %j", async (headers) => {
    const { challenge, browser, url, text } = await opened();
    const own = { ...headers, origin: headers.origin === "OWN" ? server.url : headers.origin };
    expect((await browser.submit(url, text, { decision: "approve" }, own)).status).toBe(403);
    expect((await poll(server, challenge)).body.status).toBe("pending");
  });

  test.each([
    [{ "sec-fetch-mode": "cors", "sec-fetch-user": "" }],
    [{ "sec-fetch-mode": "cors" }],
    [{ "sec-fetch-user": "" }],
  ])("that a script of our own pages sent is refused: %j", async (headers) => {
    const { challenge, browser, url, text } = await opened();
    expect((await browser.submit(url, text, { decision: "approve" }, headers)).status).toBe(403);
    expect((await poll(server, challenge)).body.status).toBe("pending");
    expect((await browser.submit(url, text, { decision: "approve" })).status).toBe(303);
  });

  test("from a browser that sends neither Origin nor Sec-Fetch-Site is refused", async () => {
    const { browser, url, text } = await opened();
    const csrf = text.match(/name="csrf" value="([^"]+)"/)![1]!;
    const body = new URLSearchParams({ csrf, decision: "approve" });
    expect((await browser.request(url, { method: "POST", body })).status).toBe(403);
    // An old browser that sends our origin is accepted.
    const headers = { origin: server.url };
    expect((await browser.request(url, { method: "POST", body, headers })).status).toBe(303);
  });

  test("over http on another host, where browsers send neither, the CSRF token alone decides", async () => {
    await using plain = await startTestServer();
    await using elsewhere = await plain.another({ publicUrl: "http://svc.test" });
    const challenge = await newChallenge(plain);
    const browser = new TestBrowser();
    const { url, text } = await browser.open(challenge.challengeUrl);
    const there = new URL(url);
    there.port = new URL(elsewhere.url).port;
    const cookie = [...browser.cookies.get(new URL(url).host)!].map(([k, v]) => `${k}=${v}`).join("; ");
    const csrf = text.match(/name="csrf" value="([^"]+)"/)![1]!;
    const post = (token: string, headers: Record<string, string> = {}) =>
      fetch(there, {
        method: "POST",
        body: new URLSearchParams({ csrf: token, decision: "approve" }),
        headers: { cookie, origin: "null", ...headers },
        redirect: "manual",
      });
    expect((await post("x".repeat(43))).status).toBe(403);
    expect((await post(csrf, { "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await post(csrf, { origin: "http://evil.test" })).status).toBe(403);
    expect((await post(csrf)).status).toBe(303);
  });

  test("the form that switches users has a separate CSRF token", async () => {
    const { challenge, browser, url, text } = await opened();
    const csrf = text.match(/name="csrf" value="([^"]+)"/)![1]!;
    const answer = await browser.request(`${url}/switch`, {
      method: "POST",
      body: new URLSearchParams({ csrf }),
      headers: { origin: server.url },
    });
    expect(answer.status).toBe(403);
    expect((await rowOf(server, challenge)).boundAt).not.toBeNull();
    expect((await browser.open(url)).text).toContain('value="approve"');
  });

  test("after the session has ended is refused", async () => {
    await using other = await startTestServer({ challengeLifetime: 100_000, sessionLifetime: 600 });
    const challenge = await newChallenge(other);
    const browser = new TestBrowser();
    const { url, text } = await browser.open(challenge.challengeUrl);
    other.clock.advance(600);
    expect((await browser.submit(url, text, { decision: "approve" })).status).toBe(404);
  });

  test.each(["", "approved", "approve "])("%p is not a decision", async (decision) => {
    const { browser, url, text } = await opened();
    const answer = await browser.submit(url, text, { decision });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("The field decision must be approve or deny");
  });

  test.each([
    ["nine fields", "a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1", 400],
    ["a repeated field", "decision=approve&decision=approve", 400],
    ["a byte that is not UTF-8", "decision=approve%FF&a=\xff", 400],
    ["more than 4 KiB", `decision=approve&a=${"a".repeat(4096)}`, 413],
  ])("a form with %s is refused", async (_, fields, status) => {
    const { browser, url, text } = await opened();
    const csrf = text.match(/name="csrf" value="([^"]+)"/)![1]!;
    const headers = { "content-type": "application/x-www-form-urlencoded", origin: server.url };
    const body = Buffer.from(`csrf=${csrf}&${fields}`, "latin1");
    expect((await browser.request(url, { method: "POST", body, headers })).status).toBe(status);
  });

  test("the form of another site, or of a browser that opened no challenge, is not read", async () => {
    const { browser, url } = await opened();
    /** It never ends: a server that reads it never answers. */
    const endless = () => new ReadableStream({ start: (stream) => stream.enqueue("decision=") });
    const send = (by: TestBrowser, origin: string) =>
      by.request(url, {
        method: "POST",
        body: endless(),
        headers: { "content-type": "application/x-www-form-urlencoded", origin },
      });
    expect((await send(browser, "https://evil.example")).status).toBe(403);
    expect((await send(new TestBrowser(), server.url)).status).toBe(404);
  });

  test("an access token approves nothing", async () => {
    const { challenge, browser, url, text } = await opened();
    await browser.submit(url, text, { decision: "approve" });
    const { body } = await poll(server, challenge);
    const next = await newChallenge(server);
    const thief = new TestBrowser({
      authorization: `Bearer ${body.encoded_jwt}`,
      cookie: `svc_auth=${body.encoded_jwt}; svc_session=${body.encoded_jwt}`,
    });
    const first = await thief.request(next.challengeUrl);
    const page = await thief.request(new URL(first.headers.get("location")!, server.url).href);
    expect(await page.text()).not.toContain("csrf");
  });
});
