import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { eq } from "drizzle-orm";
import { createSession } from "../../core/auth/session/session.ts";
import { individualOf } from "../../core/catalog/person/of_actor.ts";
import { individual, session } from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import type { Misbehaviour } from "../../tests/support/http/issuer.ts";
import { expectRefused } from "../../tests/support/http/refusal.ts";
import {
  decide,
  newChallenge,
  poll,
  rowOf,
  signInToken,
  startTestServer,
  type TestServer,
} from "../../tests/support/http/server.ts";
import { listen } from "../../tests/support/listen.ts";
import { oidcSignOn } from "../sso/oidc.ts";

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

describe("a misbehaving issuer", () => {
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
  test.each(lies)("%s: nobody is signed in, and the message is our own", async (lie) => {
    server.issuer.misbehaviour = lie;
    const before = await server.db.$count(session, eq(session.userName, "alice@example.com"));
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, 401, "the sign-in provider's answer is not valid");
    expect(await server.db.$count(session, eq(session.userName, "alice@example.com"))).toBe(before);
    // Operators can read the reason, which the page must not show.
    expect(server.logged.at(-2)! + server.logged.at(-1)!).toContain("nobody was signed in");
  });

  test.each([
    [
      "an error of the token endpoint",
      { misbehaviour: "token endpoint error" },
      "invalid_grant: secret detail",
    ],
    ["a status", { misbehaviour: "token endpoint down" }, "HTTP 502 from http://"],
    ["an error in the redirect", { error: "unauthorized_client" }, "unauthorized_client: no description"],
    ["300 characters of it", { error: "x".repeat(1000) }, `"${"x".repeat(300)}"`],
  ])("what it says is in the log: %s", async (_, answer, logged) => {
    Object.assign(server.issuer, answer);
    await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    expect(server.logged.slice(-3).join("")).toContain(logged);
  });

  test("a different subject in the userinfo answer", async () => {
    server.issuer.userinfo = { email: "alice@example.com" };
    server.issuer.misbehaviour = "other subject at userinfo";
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, 401, "answer is not valid");
  });

  test.each([
    ["userinfo refused", 401, "answer is not valid"],
    ["userinfo down", 503, "does not answer"],
  ] as const)("%s: nobody is signed in without the groups", async (lie, status, sentence) => {
    Object.assign(server.issuer, { claims: { groups: undefined }, misbehaviour: lie });
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, status, sentence);
    expect(server.logged.slice(-2).join("")).toMatch(/HTTP (403|500) from http:\S+\/userinfo/);
  });

  test.each([
    ["access_denied", "access was denied"],
    ["server_error", "reports a problem"],
    ["<script>", "reports a problem"],
  ])("the error %s becomes a message of our own", async (error, sentence) => {
    server.issuer.error = error;
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, 401, sentence);
    expect(page.text).not.toContain("<script>");
  });

  test.each([
    [{ email_verified: "False", email: "alice@example.com" }, "has not verified your e-mail address"],
    [{ email_verified: false }, "has not verified your e-mail address"],
    [{ email: undefined }, "did not identify you"],
    [{ email: 42 }, "did not identify you"],
    [{ email: "two@at@signs" }, "cannot be used here"],
    [{ email: "mi\u212Ae@example.com" }, "cannot be used here"],
  ])("claims %j identify nobody", async (claims, sentence) => {
    server.issuer.claims = claims;
    await expectRefused(
      await new TestBrowser().open((await newChallenge(server)).challengeUrl),
      401,
      sentence,
    );
  });
});

describe("an issuer", () => {
  test("may return name and groups from its userinfo endpoint only", async () => {
    server.issuer.userinfo = { email: "alice@example.com", email_verified: true, groups: ["admin"] };
    const token = await signInToken(server);
    const response = await server.fetch("/whoami", { headers: { authorization: `Bearer ${token}` } });
    expect(await response.json()).toMatchObject({
      user: "alice@example.com",
      groups: ["admin"],
      admin: true,
    });
  });

  test("may name so many groups that a token with all of them would be too large for a header", async () => {
    const groups = [...Array.from({ length: 400 }, () => crypto.randomUUID()), "admin"];
    server.issuer.claims = { groups };
    const headers = { authorization: `Bearer ${await signInToken(server)}` };
    const response = await server.fetch("/whoami", { headers });
    expect(await response.json()).toMatchObject({ groups, admin: true });
  });

  test("that is down shows a 503 page, and the server stays healthy", async () => {
    await using lonely = await startTestServer({ oidcIssuer: "http://127.0.0.1:9" });
    const challenge = await newChallenge(lonely);
    const page = await new TestBrowser().open(challenge.challengeUrl);
    await expectRefused(page, 503, "does not answer");
    expect((await lonely.fetch("/healthcheck")).status).toBe(200);
    expect((await poll(lonely, challenge)).body).toEqual({ status: "pending" });
  });

  test("that is down when a code is exchanged shows a 503 page", async () => {
    server.issuer.misbehaviour = "token endpoint down";
    const page = await new TestBrowser().open((await newChallenge(server)).challengeUrl);
    await expectRefused(page, 503, "does not answer: try again");
  });

  test("that breaks off its answer to the code shows the same page", async () => {
    await using early = await startTestServer();
    const answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
    const broken = createServer((socket) => socket.once("data", () => socket.end(answer)));
    const port = await listen(broken);
    early.issuer.metadata = { token_endpoint: `http://127.0.0.1:${port}/token` };
    const page = await new TestBrowser().open((await newChallenge(early)).challengeUrl);
    await expectRefused(page, 503, "does not answer: try again");
    broken.close();
  });

  test("whose metadata name another issuer is not called down", async () => {
    await using early = await startTestServer();
    early.issuer.metadata = { issuer: `${early.issuer.url}/tenant` };
    const page = await new TestBrowser().open((await newChallenge(early)).challengeUrl);
    await expectRefused(page, 503, "metadata is not valid");
  });

  test("that is every tenant of Entra ID signs nobody in", async () => {
    const base = "https://login.microsoftonline.com";
    const fetchMetadata = async () =>
      Response.json({
        issuer: `${base}/{tenantid}/v2.0`,
        authorization_endpoint: `${base}/common/oauth2/v2.0/authorize`,
      });
    const log = createLog("silent");
    const config = { ...server.config, oidcIssuer: `${base}/common/v2.0` };
    const sso = oidcSignOn({ ...server, log, config }, fetchMetadata as unknown as typeof fetch);
    const { session } = await createSession({ ...server, log });
    const begun = sso.begin({ session, returnTo: "/", userHint: "alice", again: false });
    await expect(begun).rejects.toThrow("metadata is not valid");
  });

  test("that was down at first is tried again", async () => {
    await using early = await startTestServer();
    const challenge = await newChallenge(early);
    const browser = new TestBrowser();
    early.issuer.misbehaviour = "down";
    await expectRefused(await browser.open(challenge.challengeUrl), 503, "does not answer");
    early.issuer.misbehaviour = undefined;
    expect((await decide(challenge, "approve", browser)).status).toBe(303);
  });

  test.each([
    ["another issuer's key set", { jwks_uri: "http://127.0.0.1:9/jwks" }],
    ["an unreachable token endpoint", { token_endpoint: "http://127.0.0.1:9/token" }],
    ["no authorization endpoint", { authorization_endpoint: undefined }],
  ])("whose metadata were wrong (%s) works once they are corrected", async (_, metadata) => {
    await using early = await startTestServer();
    early.issuer.metadata = metadata;
    const open = async () => new TestBrowser().open((await newChallenge(early)).challengeUrl);
    expect([401, 503]).toContain((await open()).status);
    early.issuer.metadata = {};
    early.clock.advance(5);
    expect((await open()).text).toContain("Sign in a terminal?");
  });

  test.each([
    ["signing algorithm", { id_token_signing_alg_values_supported: ["ES512"] }],
    ["key set", { jwks_uri: "http://127.0.0.1:9/jwks" }],
    ["token endpoint", { token_endpoint: "http://127.0.0.1:9/token" }],
    ["userinfo endpoint", { userinfo_endpoint: "http://127.0.0.1:9/userinfo" }],
    ["first userinfo endpoint", { userinfo_endpoint: undefined }],
    ["answer's iss", { authorization_response_iss_parameter_supported: true }],
  ])("whose %s changed after it was cached refuses nobody, and gets each code once", async (_, old) => {
    await using early = await startTestServer();
    early.issuer.userinfo = { email: "alice@example.com", groups: [] };
    early.issuer.metadata = old;
    const browser = new TestBrowser();
    const first = await browser.request((await newChallenge(early)).challengeUrl);
    const second = await browser.request(new URL(first.headers.get("location")!, early.url).href);
    early.issuer.metadata = {};
    const page = await browser.open(second.headers.get("location")!);
    expect(page.text).toContain("Sign in a terminal?");
    expect(early.issuer.discoveries).toBe(2);
  });

  test.each(["authorization_endpoint", "token_endpoint", "jwks_uri"])(
    "whose metadata lose their %s is used with the last ones that had it",
    async (member) => {
      await using early = await startTestServer();
      const open = async () => new TestBrowser().open((await newChallenge(early)).challengeUrl);
      expect((await open()).text).toContain("Sign in a terminal?");
      early.issuer.metadata = { [member]: undefined };
      early.clock.advance(60);
      expect((await open()).text).toContain("Sign in a terminal?");
      expect(early.issuer.discoveries).toBe(2);
    },
  );

  test("without an authorization endpoint in the cache is asked for it again", async () => {
    await using early = await startTestServer();
    const open = async () => new TestBrowser().open((await newChallenge(early)).challengeUrl);
    early.issuer.metadata = { authorization_endpoint: undefined };
    await expectRefused(await open(), 503, "metadata is not valid");
    early.issuer.metadata = {};
    expect((await open()).text).toContain("Sign in a terminal?");
  });

  test("whose endpoints move is followed within a minute, without a failure", async () => {
    await using early = await startTestServer({ challengeLifetime: 600 });
    const browser = new TestBrowser();
    const challenge = await newChallenge(early);
    await browser.request(challenge.challengeUrl);
    const { id } = await rowOf(early, challenge);
    const next = async () =>
      (await browser.request(`${early.url}/approve/${id}`)).headers.get("location")!.split("?")[0];
    expect(await next()).toBe(`${early.issuer.url}/authorize`);
    early.issuer.metadata = { authorization_endpoint: `${early.issuer.url}/moved` };
    early.clock.advance(59);
    expect(await next()).toBe(`${early.issuer.url}/authorize`);
    early.clock.advance(1);
    expect(await next()).toBe(`${early.issuer.url}/moved`);
    // It uses the cached metadata while the issuer is down.
    early.issuer.misbehaviour = "down";
    early.clock.advance(60);
    expect(await next()).toBe(`${early.issuer.url}/moved`);
  });

  test("that replaces its key is believed at once, also one that withdraws the old key", async () => {
    const open = async () => new TestBrowser().open((await newChallenge(server)).challengeUrl);
    expect((await open()).text).toContain("Sign in a terminal?");
    const { discoveries } = server.issuer;
    server.issuer.key = "stranger";
    expect((await open()).text).toContain("Sign in a terminal?");
    expect(server.issuer.discoveries).toBe(discoveries);
    server.issuer.key = "own";
    expect((await open()).text).toContain("Sign in a terminal?");
  });

  test.each([
    ["a wrong nonce", { misbehaviour: "wrong nonce" }, 1],
    ["an error in the redirect", { error: "access_denied" }, 1],
    ["an unknown key", { misbehaviour: "unknown key" }, 13],
    ["a wrong code", { misbehaviour: "token endpoint error" }, 13],
  ] as const)("is not asked for its metadata on every failed sign-in: %s", async (_, failure, reads) => {
    await using early = await startTestServer();
    Object.assign(early.issuer, failure);
    const fail = async () =>
      expect((await new TestBrowser().open((await newChallenge(early)).challengeUrl)).status).toBe(401);
    for (let i = 0; i < 30; i += 1) await fail();
    expect(early.issuer.discoveries).toBe(reads);
  });

  test("must use https unless it is on this machine", async () => {
    const started = startTestServer({ oidcIssuer: "http://issuer.example.com" });
    expect(started).rejects.toThrow("SVC_OIDC_ISSUER");
  });
});

describe("a user's name", () => {
  const nameOf = async (email: string) => {
    const [row] = await server.db.select().from(individual).where(eq(individual.email, email));
    return row && { name: row.name, listed: row.listed, version: row.version };
  };
  const signInAs = async (user: string, claims: Record<string, unknown>) => {
    Object.assign(server.issuer, { user, claims: { ...claims, groups: [] } });
    await signInToken(server);
  };

  test("is the issuer's from the first sign-in on, until somebody changes it here", async () => {
    const email = "dana@example.com";
    await signInAs(email, { name: "Dana Díaz" });
    expect(await nameOf(email)).toEqual({ name: "Dana Díaz", listed: false, version: 1 });
    await server.db.update(individual).set({ name: "Dana D." }).where(eq(individual.email, email));
    await signInAs(email, { name: "Dana Díaz" });
    expect(await nameOf(email)).toMatchObject({ name: "Dana D." });
  });

  test("replaces one that was made from the address", async () => {
    const email = "erin@example.com";
    const at = server.clock.now();
    await individualOf(server.db, { user: email }, at);
    await signInAs(email, { name: "Erin" });
    expect(await nameOf(email)).toEqual({ name: "Erin", listed: false, version: 2 });
  });

  test.each([[undefined], [""], [7], ["a\nb"], ["\u202eb"], ["x".repeat(501)]])("is not %j", async (name) => {
    const email = `frank${JSON.stringify(name)?.length ?? 0}@example.com`;
    await signInAs(email, { name });
    expect(await nameOf(email)).toBeUndefined();
  });
});

describe("the callback", () => {
  /** Signs in up to the issuer's redirect, and returns the callback URL. */
  async function halfWay(browser: TestBrowser): Promise<string> {
    const { challengeUrl } = await newChallenge(server);
    const first = await browser.request(challengeUrl);
    const second = await browser.request(new URL(first.headers.get("location")!, server.url).href);
    const third = await browser.request(second.headers.get("location")!);
    return third.headers.get("location")!;
  }

  test("works once", async () => {
    const browser = new TestBrowser();
    const back = await halfWay(browser);
    expect((await browser.request(back)).status).toBe(303);
    const again = await browser.open(back);
    await expectRefused(again, 401, "was not started in this browser, or is already over");
  });

  test("of another tab may arrive with the cookie from before the first one's sign-in", async () => {
    const browser = new TestBrowser();
    const [first, second] = [await halfWay(browser), await halfWay(browser)];
    const late = new TestBrowser();
    for (const [host, jar] of browser.cookies) late.cookies.set(host, new Map(jar));
    expect((await browser.request(first)).status).toBe(303);
    const { status, headers } = await late.request(second);
    expect([status, headers.getSetCookie()]).toEqual([303, []]);
    const page = await browser.open(new URL(headers.get("location")!, server.url).href);
    expect(page.text).toContain("Sign in a terminal?");
    // Without the new cookie, the address shows nothing.
    expect((await late.request(page.url)).status).toBe(404);
  });

  test("is not used up by HEAD", async () => {
    const browser = new TestBrowser();
    const back = await halfWay(browser);
    expect((await browser.request(back, { method: "HEAD" })).status).toBe(404);
    expect((await browser.request(back)).status).toBe(303);
  });

  test("works only in the browser that started the sign-in", async () => {
    const back = await halfWay(new TestBrowser());
    const victim = new TestBrowser();
    await victim.request((await newChallenge(server)).challengeUrl);
    await expectRefused(await victim.open(back), 401, "was not started in this browser");
    await expectRefused(await new TestBrowser().open(back), 401, "was not started in this browser");
  });

  test("works for ten minutes", async () => {
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
  ])("%p signs nobody in", async (query) => {
    const browser = new TestBrowser();
    await browser.request((await newChallenge(server)).challengeUrl);
    const page = await browser.open(`${server.url}/sign_in/callback${query}`);
    await expectRefused(page, 401, "was not started in this browser");
  });
});
