import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { session } from "../../drizzle/schema/index.ts";
import { TestBrowser } from "../../tests/support/browser.ts";
import type { Misbehaviour } from "../../tests/support/issuer.ts";
import {
  decide,
  newChallenge,
  poll,
  signInToken,
  startTestServer,
  type TestServer,
} from "../../tests/support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ rateGenerate: 100_000, ratePoll: 1_000_000 });
});
afterAll(() => server[Symbol.asyncDispose]());
afterEach(() => {
  Object.assign(server.issuer, {
    user: "alice@example.com",
    claims: { email_verified: true, groups: ["admin", "oncall"] },
    misbehaviour: undefined,
    error: undefined,
    userinfo: undefined,
  });
});

/** Nobody got in: no page with buttons, no session with a name, and nothing that the issuer said. */
async function expectRefused(page: { status: number; text: string }, status: number, sentence: string) {
  expect(page.status).toBe(status);
  expect(page.text).toContain(sentence);
  expect(page.text).not.toContain('value="approve"');
  expect(page.text).not.toContain("secret detail");
}

describe("an issuer that lies", () => {
  const lies: Misbehaviour[] = [
    "wrong nonce",
    "no nonce",
    "wrong audience",
    "wrong issuer",
    "unknown key",
    "alg none",
    "expired",
    "token endpoint error",
    "not json",
    "no ID token",
  ];
  test.each(lies)("%s: nobody is signed in, in a sentence of ours", async (lie) => {
    server.issuer.misbehaviour = lie;
    const before = await server.db.$count(session, eq(session.userName, "alice@example.com"));
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, 401, "the sign-in provider&#x27;s answer is not valid");
    expect(await server.db.$count(session, eq(session.userName, "alice@example.com"))).toBe(before);
    // What the page may not say, an operator can read.
    expect(server.logged.at(-2)! + server.logged.at(-1)!).toContain("nobody was signed in");
  });

  test("another subject in the userinfo answer", async () => {
    server.issuer.userinfo = { email: "alice@example.com" };
    server.issuer.misbehaviour = "other subject at userinfo";
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, 401, "answer is not valid");
  });

  test.each([
    ["access_denied", "access was denied"],
    ["server_error", "reports a problem"],
    ["<script>", "reports a problem"],
  ])("the error %s becomes a sentence of ours", async (error, sentence) => {
    server.issuer.error = error;
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, 401, sentence);
    expect(page.text).not.toContain("<script>");
  });

  test.each([
    [{ email_verified: "False", email: "alice@example.com" }, "has not verified your e-mail address"],
    [{ email_verified: null, email: "alice@example.com" }, "has not verified your e-mail address"],
    [{ email_verified: false }, "has not verified your e-mail address"],
    [{ email: undefined }, "did not say who you are"],
    [{ email: 42 }, "did not say who you are"],
    [{ email: "two@at@signs" }, "cannot be used here"],
    [{ email: "mi\u212Ae@example.com" }, "cannot be used here"],
  ])("claims %j name nobody", async (claims, sentence) => {
    server.issuer.claims = claims;
    await expectRefused(
      await new TestBrowser().open((await newChallenge(server)).challengeUrl),
      401,
      sentence,
    );
  });
});

describe("an issuer", () => {
  test("may tell name and groups at its userinfo endpoint only", async () => {
    server.issuer.userinfo = { email: "alice@example.com", email_verified: true, groups: ["admin"] };
    const token = await signInToken(server);
    const response = await server.fetch("/whoami", { headers: { authorization: `Bearer ${token}` } });
    expect(await response.json()).toMatchObject({
      user: "alice@example.com",
      groups: ["admin"],
      admin: true,
    });
  });

  test("that is down is a page of 503, and the server is well", async () => {
    await using lonely = await startTestServer({ oidcIssuer: "http://127.0.0.1:9" });
    const challenge = await newChallenge(lonely);
    const page = await new TestBrowser().open(challenge.challengeUrl);
    await expectRefused(page, 503, "does not answer");
    expect((await lonely.fetch("/healthcheck")).status).toBe(200);
    expect((await poll(lonely, challenge)).body).toEqual({ status: "pending" });
  });

  test("that was down when first needed is asked again", async () => {
    await using early = await startTestServer();
    const challenge = await newChallenge(early);
    const browser = new TestBrowser();
    early.issuer.misbehaviour = "down";
    await expectRefused(await browser.open(challenge.challengeUrl), 503, "does not answer");
    early.issuer.misbehaviour = undefined;
    expect((await decide(challenge, "approve", browser)).status).toBe(303);
  });

  test("must be https unless it is on this machine", async () => {
    const started = startTestServer({ oidcIssuer: "http://issuer.example.com" });
    expect(started).rejects.toThrow("SVC_OIDC_ISSUER");
  });
});

describe("the way back", () => {
  /** Goes as far as the issuer, and returns the address that it sends the browser back to. */
  async function halfWay(browser: TestBrowser): Promise<string> {
    const { challengeUrl } = await newChallenge(server);
    const first = await browser.request(challengeUrl);
    const second = await browser.request(new URL(first.headers.get("location")!, server.url).href);
    const third = await browser.request(second.headers.get("location")!);
    return third.headers.get("location")!;
  }

  test("counts once", async () => {
    const browser = new TestBrowser();
    const back = await halfWay(browser);
    expect((await browser.request(back)).status).toBe(303);
    const again = await browser.open(back);
    await expectRefused(again, 401, "was not started in this browser, or is already over");
  });

  test("is not gone by HEAD", async () => {
    const browser = new TestBrowser();
    const back = await halfWay(browser);
    expect((await browser.request(back, { method: "HEAD" })).status).toBe(404);
    expect((await browser.request(back)).status).toBe(303);
  });

  test("counts only in the browser that set out", async () => {
    const back = await halfWay(new TestBrowser());
    const victim = new TestBrowser();
    await victim.request((await newChallenge(server)).challengeUrl);
    await expectRefused(await victim.open(back), 401, "was not started in this browser");
    await expectRefused(await new TestBrowser().open(back), 401, "was not started in this browser");
  });

  test("counts for ten minutes", async () => {
    await using slow = await startTestServer({ challengeLifetime: 3600 });
    const browser = new TestBrowser();
    const first = await browser.request((await newChallenge(slow)).challengeUrl);
    const second = await browser.request(new URL(first.headers.get("location")!, slow.url).href);
    const third = await browser.request(second.headers.get("location")!);
    slow.clock.advance(600);
    await expectRefused(await browser.open(third.headers.get("location")!), 401, "already over");
  });

  test.each([
    "",
    "?state=x",
    `?state=${"a".repeat(43)}`,
    "?code=x",
    "?error=access_denied",
    "?state=a&state=b",
  ])("%p leads nowhere", async (query) => {
    const browser = new TestBrowser();
    await browser.request((await newChallenge(server)).challengeUrl);
    const page = await browser.open(`${server.url}/sign_in/callback${query}`);
    await expectRefused(page, 401, "was not started in this browser");
  });
});

describe("behind an identity-aware proxy", () => {
  async function startProxied() {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwks = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async () =>
        Response.json({ keys: [{ ...(await exportJWK(publicKey)), kid: "p", alg: "ES256" }] }),
    });
    const proxied = await startTestServer({
      sso: "proxy",
      proxyHeader: "x-assertion",
      proxyJwksUrl: `http://127.0.0.1:${jwks.port}/`,
      proxyIssuer: "https://proxy.example.com",
      proxyAudience: "svc-at-proxy",
    });
    const sign = (claims: Record<string, unknown> = {}, key = privateKey) => {
      const iat = Math.floor(proxied.clock.now().getTime() / 1000);
      const all = { email: "alice@example.com", groups: ["admin"], iss: "https://proxy.example.com" };
      return new SignJWT({ ...all, aud: "svc-at-proxy", iat, exp: iat + 60, ...claims })
        .setProtectedHeader({ alg: "ES256", kid: "p" })
        .sign(key);
    };
    const stop = async () => {
      await proxied[Symbol.asyncDispose]();
      await jwks.stop(true);
    };
    return { proxied, sign, [Symbol.asyncDispose]: stop };
  }

  test("its signed header stands in for the issuer", async () => {
    await using set = await startProxied();
    const challenge = await newChallenge(set.proxied);
    const browser = new TestBrowser({ "x-assertion": await set.sign() });
    expect((await decide(challenge, "approve", browser)).status).toBe(303);
    expect((await poll(set.proxied, challenge)).body).toMatchObject({
      status: "success",
      user: "alice@example.com",
    });
  });

  test("nothing but a good signature, issuer, audience and time is believed", async () => {
    await using set = await startProxied();
    const { proxied, sign } = set;
    const stranger = await generateKeyPair("ES256");
    const past = Math.floor(proxied.clock.now().getTime() / 1000) - 3600;
    const assertions = [
      undefined,
      "",
      "nonsense",
      new UnsecuredJWT({ email: "alice@example.com", aud: "svc-at-proxy", iss: "https://proxy.example.com" })
        .setIssuedAt()
        .setExpirationTime("1h")
        .encode(),
      await sign({}, stranger.privateKey),
      await sign({ iss: "https://evil.example" }),
      await sign({ aud: "another" }),
      await sign({ iat: past - 60, exp: past }),
      await sign({ exp: undefined }),
      await sign({ email: undefined }),
    ];
    for (const assertion of assertions) {
      const browser = new TestBrowser(assertion === undefined ? {} : { "x-assertion": assertion });
      const page = await browser.open((await newChallenge(proxied)).challengeUrl);
      expect(page.status).toBe(401);
      expect(page.text).not.toContain('value="approve"');
    }
  });

  test("a session is worth nothing once the header names somebody else or is gone", async () => {
    await using set = await startProxied();
    const { proxied, sign } = set;
    const challenge = await newChallenge(proxied);
    const browser = new TestBrowser();
    const headers = async (user?: string) => ({
      ...(user ? { "x-assertion": await sign({ email: user }) } : {}),
    });
    const alice = await headers("alice@example.com");
    const first = await browser.request(challenge.challengeUrl, { headers: alice });
    const url = new URL(first.headers.get("location")!, proxied.url).href;
    await browser.request(url, { headers: alice });
    const text = await (await browser.request(url, { headers: alice })).text();
    expect(text).toContain('value="approve"');
    expect((await browser.submit(url, text, { decision: "approve" }, await headers())).status).toBe(401);
    const bob = await browser.submit(url, text, { decision: "approve" }, await headers("bob@example.com"));
    expect(bob.status).toBe(403);
    expect((await poll(proxied, challenge)).body.status).toBe("pending");
    expect((await browser.submit(url, text, { decision: "approve" }, alice)).status).toBe(303);
  });

  test("a page is shown to whom the header names now, not to whom it named before", async () => {
    await using set = await startProxied();
    const { proxied, sign } = set;
    const { challengeUrl } = await newChallenge(proxied);
    const browser = new TestBrowser();
    const open = async (assertion?: string) => {
      const headers: Record<string, string> = assertion === undefined ? {} : { "x-assertion": assertion };
      const first = await browser.request(challengeUrl, { headers });
      const url = new URL(first.headers.get("location")!, proxied.url).href;
      const second = await browser.request(url, { headers });
      return second.status === 303 ? browser.request(url, { headers }) : second;
    };
    expect(await (await open(await sign())).text()).toContain('value="approve"');
    const bob = await open(await sign({ email: "bob@example.com" }));
    await expectRefused({ status: bob.status, text: await bob.text() }, 403, "bob@example.com");
    const nobody = await open();
    await expectRefused({ status: nobody.status, text: await nobody.text() }, 401, "did not say who you are");
  });

  test("groups that the proxy took away are not in the token", async () => {
    await using set = await startProxied();
    const { proxied, sign } = set;
    const challenge = await newChallenge(proxied);
    const browser = new TestBrowser();
    const admin = { "x-assertion": await sign() };
    const first = await browser.request(challenge.challengeUrl, { headers: admin });
    const url = new URL(first.headers.get("location")!, proxied.url).href;
    await browser.request(url, { headers: admin });
    const member = { "x-assertion": await sign({ groups: [] }) };
    const text = await (await browser.request(url, { headers: admin })).text();
    expect((await browser.submit(url, text, { decision: "approve" }, member)).status).toBe(403);
    await browser.request(url, { headers: member });
    const again = await (await browser.request(url, { headers: member })).text();
    expect((await browser.submit(url, again, { decision: "approve" }, member)).status).toBe(303);
    const { body } = await poll(proxied, challenge);
    const headers = { authorization: `Bearer ${body.encoded_jwt}` };
    expect(await (await proxied.fetch("/whoami", { headers })).json()).toMatchObject({
      groups: [],
      admin: false,
    });
  });

  test("keys over plain http from elsewhere are refused at the start", async () => {
    const proxyJwksUrl = "http://keys.example.com/";
    const start = startTestServer({ sso: "proxy", proxyJwksUrl, proxyIssuer: "i", proxyAudience: "a" });
    expect(start).rejects.toThrow("SVC_PROXY_JWKS_URL");
  });

  test("keys that are answered with an error are a page of 503", async () => {
    await using set = await startProxied();
    const broken = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response("no", { status: 500 }),
    });
    await using other = await set.proxied.another({ proxyJwksUrl: `http://127.0.0.1:${broken.port}/` });
    const { challengeUrl } = await newChallenge(other);
    const first = await other.fetch(new URL(challengeUrl).pathname);
    const cookie = first.headers.getSetCookie()[0]!.split(";")[0]!;
    const headers = { cookie, "x-assertion": await set.sign() };
    expect((await other.fetch(first.headers.get("location")!, { headers })).status).toBe(503);
    await broken.stop(true);
  });

  test("keys that cannot be fetched are a page of 503", async () => {
    await using lonely = await startTestServer({
      sso: "proxy",
      proxyHeader: "x-assertion",
      proxyJwksUrl: "http://127.0.0.1:9/",
      proxyIssuer: "i",
      proxyAudience: "a",
    });
    const { privateKey } = await generateKeyPair("ES256");
    const assertion = await new SignJWT({}).setProtectedHeader({ alg: "ES256", kid: "p" }).sign(privateKey);
    const browser = new TestBrowser({ "x-assertion": assertion });
    expect((await browser.open((await newChallenge(lonely)).challengeUrl)).status).toBe(503);
  });
});
