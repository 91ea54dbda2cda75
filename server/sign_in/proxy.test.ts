import { describe, expect, test } from "bun:test";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { signOutEverywhere } from "../../core/auth/session/issuer_session.ts";
import { auditLog, session } from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { clicked, TestBrowser } from "../../tests/support/browser/browser.ts";
import { fieldsOf } from "../../tests/support/browser/reader.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { expectRefused } from "../../tests/support/http/refusal.ts";
import { decide, newChallenge, poll, startTestServer } from "../../tests/support/http/server.ts";
import { slowBody } from "../../tests/support/http/slow_body.ts";

describe("behind an identity-aware proxy", () => {
  async function startProxied(alg = "ES256") {
    const { privateKey, publicKey } = await generateKeyPair(alg);
    const published = { key: publicKey, kid: "p" as string | undefined, reads: 0 };
    const jwks = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async () => {
        published.reads += 1;
        return Response.json({ keys: [{ ...(await exportJWK(published.key)), kid: published.kid, alg }] });
      },
    });
    const proxied = await startTestServer({
      sso: "proxy",
      proxyHeader: "x-assertion",
      proxyJwksUrl: `http://127.0.0.1:${jwks.port}/`,
      proxyIssuer: "https://proxy.example.com",
      proxyAudience: "svc-at-proxy",
      rateGenerate: 100_000,
    });
    const sign = (claims: Record<string, unknown> = {}, key = privateKey) => {
      const iat = Math.floor(proxied.clock.now().getTime() / 1000);
      const all = { email: "alice@example.com", groups: ["admin"], iss: "https://proxy.example.com" };
      return new SignJWT({ ...all, aud: "svc-at-proxy", iat, exp: iat + 60, ...claims })
        .setProtectedHeader({ alg, kid: published.kid })
        .sign(key);
    };
    const stop = async () => {
      await proxied[Symbol.asyncDispose]();
      await jwks.stop(true);
    };
    return { proxied, sign, published, [Symbol.asyncDispose]: stop };
  }

  test("its signed header replaces the issuer", async () => {
    await using set = await startProxied();
    const challenge = await newChallenge(set.proxied);
    const browser = new TestBrowser({ "x-assertion": await set.sign() });
    expect((await decide(challenge, "approve", browser)).status).toBe(303);
    expect((await poll(set.proxied, challenge)).body).toMatchObject({
      status: "success",
      user: "alice@example.com",
    });
  });

  test.each(["ES384", "PS512"])("which may sign with %s", async (alg) => {
    await using set = await startProxied(alg);
    const browser = new TestBrowser({ "x-assertion": await set.sign() });
    expect((await browser.open((await newChallenge(set.proxied)).challengeUrl)).status).toBe(200);
  });

  test.each(["p", "q", undefined])(
    "whose key is replaced by one with the kid %p refuses nobody",
    async (kid) => {
      await using set = await startProxied();
      const { proxied, sign, published } = set;
      const open = async (assertion: string) =>
        new TestBrowser({ "x-assertion": assertion }).open((await newChallenge(proxied)).challengeUrl);
      expect((await open(await sign())).status).toBe(200);
      const next = await generateKeyPair("ES256");
      Object.assign(published, { key: next.publicKey, kid });
      expect((await open(await sign({}, next.privateKey))).status).toBe(200);
      expect(published.reads).toBe(2);
      // A stranger's headers do not make svc read the keys each time.
      const stranger = await generateKeyPair("ES256");
      for (let i = 0; i < 30; i += 1)
        expect((await open(await sign({}, stranger.privateKey))).status).toBe(401);
      expect(published.reads).toBeLessThanOrEqual(13);
    },
  );

  test("only a header with the right signature, issuer, audience and time is accepted", async () => {
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

  test("a session is invalid once the header names another user or is gone", async () => {
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

  test("a form and a download count with the header that they began with, even if it has expired", async () => {
    await using set = await startProxied();
    const { proxied, sign } = set;
    const assertion = await sign();
    const browser = new TestBrowser({ "x-assertion": assertion });
    const { text } = await browser.open(`${proxied.url}/app/profile`);
    const cookies = [...browser.cookies.get(new URL(proxied.url).host)!];
    const headers = {
      ...clicked,
      "x-assertion": assertion,
      cookie: cookies.map((pair) => pair.join("=")).join("; "),
      "content-type": "application/x-www-form-urlencoded",
    };
    const ask = (path: string, init: RequestInit = {}) =>
      proxied.app.handle(new Request(`${proxied.url}${path}`, { headers, ...init }));
    const data = { text: "y".repeat(4000) };
    const entry = { at: proxied.clock.now(), actor: "x", action: "token.revoked", data };
    await proxied.db.insert(auditLog).values(Array.from({ length: 100 }, () => entry));
    const reader = (await ask("/app/admin/audit/download/csv")).body!.getReader();
    await reader.read();
    const fields = { ...fieldsOf(text, "/app/profile"), name: "Alice Ames" };
    const body = slowBody(`${new URLSearchParams(fields)}`, async () => proxied.clock.advance(200));
    const saved = await ask("/app/profile", { method: "POST", body });
    expect([saved.status, saved.headers.get("location")]).toEqual([303, "/app/profile?saved"]);
    while (!(await reader.read()).done);
    expect((await ask("/app/profile")).status).toBe(401);
  });

  test("nothing is approved while a user is signed out everywhere", async () => {
    await using set = await startProxied();
    const { proxied, sign } = set;
    const user = "alice@example.com";
    const browser = new TestBrowser({ "x-assertion": await sign() });
    await browser.open(`${proxied.url}/app/profile`);
    const [, approved] = await inTheWay<unknown>(
      proxied.db,
      // Sessions end last.
      (tx) => tx.select().from(session).for("no key update"),
      () => signOutEverywhere({ ...proxied, log: createLog("silent") }, { user, address: "192.0.2.1" }),
      async () => {
        const wanted = await newChallenge(proxied);
        const { status } = await decide(wanted, "approve", browser);
        return [status, (await poll(proxied, wanted)).body.status];
      },
    );
    expect(approved).toMatchObject({ value: [403, "pending"] });
  });

  test("a page is shown to the user that the header names now", async () => {
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
    await expectRefused({ status: nobody.status, text: await nobody.text() }, 401, "did not identify you");
  });

  test.each([[[]], [["ops"]], [["ops", "ops"]]])(
    "groups removed by the proxy (now %p) are not in the token",
    async (groups: string[]) => {
      await using set = await startProxied();
      const { proxied, sign } = set;
      const challenge = await newChallenge(proxied);
      const browser = new TestBrowser();
      const admin = { "x-assertion": await sign({ groups: ["admin", "ops"] }) };
      const first = await browser.request(challenge.challengeUrl, { headers: admin });
      const url = new URL(first.headers.get("location")!, proxied.url).href;
      await browser.request(url, { headers: admin });
      const member = { "x-assertion": await sign({ groups }) };
      const text = await (await browser.request(url, { headers: admin })).text();
      expect((await browser.submit(url, text, { decision: "approve" }, member)).status).toBe(403);
      await browser.request(url, { headers: member });
      const again = await (await browser.request(url, { headers: member })).text();
      expect((await browser.submit(url, again, { decision: "approve" }, member)).status).toBe(303);
      const { body } = await poll(proxied, challenge);
      const headers = { authorization: `Bearer ${body.encoded_jwt}` };
      expect(await (await proxied.fetch("/whoami", { headers })).json()).toMatchObject({
        groups,
        admin: false,
      });
    },
  );

  test("a plain http key URL on another host is refused at startup", async () => {
    const proxyJwksUrl = "http://keys.example.com/";
    const start = startTestServer({ sso: "proxy", proxyJwksUrl, proxyIssuer: "i", proxyAudience: "a" });
    expect(start).rejects.toThrow("SVC_PROXY_JWKS_URL");
  });

  test("an error answer for the keys shows a 503 page", async () => {
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

  test("unreachable keys show a 503 page", async () => {
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
