import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as client from "openid-client";
import { freePort } from "../../platform/free_port.ts";
import { startIdp } from "./main.ts";
import { defaultPassword } from "./users.ts";

const publicUrl = "http://127.0.0.1:59999";
const redirectUri = `${publicUrl}/sign_in/callback`;
const clientSecret = "a secret of this test only";
let idp: Awaited<ReturnType<typeof startIdp>>;
let configuration: client.Configuration;
const logged: string[] = [];

beforeAll(async () => {
  idp = await startIdp({
    host: "127.0.0.1",
    port: 0,
    publicUrl,
    clientSecret,
    log: (line) => logged.push(line),
  });
  configuration = await client.discovery(
    new URL(idp.issuer),
    "svc",
    undefined,
    client.ClientSecretBasic(clientSecret),
    { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks] },
  );
});
afterAll(() => idp.stop());

/** A browser without scripts: keeps cookies, follows redirects within the provider, and stops when it leaves it. */
class Browser {
  #cookies = new Map<string, string>();

  async open(
    url: string | URL,
    init: RequestInit = {},
  ): Promise<{ response: Response; url: URL; text: string }> {
    let at = new URL(url);
    let request = init;
    for (;;) {
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(at, {
        ...request,
        redirect: "manual",
        headers: { ...request.headers, cookie },
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name, value] = line.match(/^([^=]+)=([^;]*)/)!;
        if (value) this.#cookies.set(name!, value);
        else this.#cookies.delete(name!);
      }
      const location = response.headers.get("location");
      if (!location) return { response, url: at, text: await response.text() };
      at = new URL(location, at);
      if (at.origin !== new URL(idp.issuer).origin) return { response, url: at, text: "" };
      request = {};
    }
  }

  submit(page: { url: URL }, fields: Record<string, string>, headers: Record<string, string> = {}) {
    return this.open(page.url, { method: "POST", body: new URLSearchParams(fields), headers });
  }
}

async function begin(browser: Browser, extra: Record<string, string> = {}) {
  const verifier = client.randomPKCECodeVerifier();
  const url = client.buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    scope: "openid email profile",
    state: "state",
    nonce: "nonce",
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...extra,
  });
  for (const [name, value] of Object.entries(extra)) if (value === "") url.searchParams.delete(name);
  return { page: await browser.open(url), verifier };
}

async function claimsOf(callback: URL, verifier: string) {
  const checks = {
    pkceCodeVerifier: verifier,
    expectedState: "state",
    expectedNonce: "nonce",
    idTokenExpected: true,
  };
  return (await client.authorizationCodeGrant(configuration, callback, checks)).claims()!;
}

async function signIn(browser: Browser, user: string, extra: Record<string, string> = {}) {
  const { page, verifier } = await begin(browser, extra);
  const answer = await browser.submit(page, { user, password: defaultPassword });
  expect(answer.url.href).toStartWith(redirectUri);
  return claimsOf(answer.url, verifier);
}

describe("signing in", () => {
  test("gives e-mail, name and groups in the ID token", async () => {
    expect(await signIn(new Browser(), "alice@example.com")).toMatchObject({
      sub: "alice",
      email: "alice@example.com",
      email_verified: true,
      name: "Alice Adams",
      groups: ["admin"],
      nonce: "nonce",
    });
    expect(await signIn(new Browser(), " BOB ")).toMatchObject({ email: "bob@example.com", groups: [] });
  });

  test("is remembered by the browser, and required again with prompt=login", async () => {
    const browser = new Browser();
    await signIn(browser, "alice");
    const again = await begin(browser);
    expect(await claimsOf(again.page.url, again.verifier)).toMatchObject({ sub: "alice" });
    expect((await begin(browser, { prompt: "login" })).page.text).toContain('name="password"');
  });

  test("switches users with prompt=login, or with the service's login_hint", async () => {
    const browser = new Browser();
    await signIn(browser, "alice");
    expect(await signIn(browser, "bob", { prompt: "login" })).toMatchObject({ sub: "bob", groups: [] });
    const { page } = await begin(browser, { login_hint: "carol@example.com" });
    expect(page.text).toContain('value="carol@example.com"');
    expect(await signIn(browser, "carol", { login_hint: "carol@example.com" })).toMatchObject({
      sub: "carol",
    });
  });

  test("can be cancelled", async () => {
    const browser = new Browser();
    const { page } = await begin(browser);
    const { url } = await browser.submit(page, { cancel: "yes" });
    expect(url.searchParams.get("error")).toBe("access_denied");
  });
});

describe("refusals", () => {
  test("a wrong password and an unknown user get the same answer", async () => {
    const browser = new Browser();
    const { page } = await begin(browser);
    const answers = await Promise.all([
      browser.submit(page, { user: "carol", password: "wrong" }),
      browser.submit(page, { user: "nobody", password: "wrong" }),
      browser.submit(page, { user: "nobody", password: defaultPassword }),
      browser.submit(page, { user: "", password: "" }),
    ]);
    const plain = answers.map(({ text }) => text.replace(/id="user" name="user" value="[^"]*"/, ""));
    expect(answers.map(({ response }) => response.status)).toEqual([401, 401, 401, 401]);
    expect(new Set(plain.slice(0, 3)).size).toBe(1);
    expect(plain[0]).toContain('role="alert">User or password is wrong');
    expect(logged.join("\n")).not.toContain("wrong");
  });

  test("ten wrong passwords block a user for a minute for everyone; other users can go on", async () => {
    const browser = new Browser();
    const { page } = await begin(browser);
    for (let i = 0; i < 10; i++) await browser.submit(page, { user: "carol", password: `wrong ${i}` });
    const { response } = await browser.submit(page, { user: "Carol@example.com", password: defaultPassword });
    expect(response.status).toBe(429);
    expect(Number(response.headers.get("retry-after"))).toBeWithin(1, 61);
    await signIn(new Browser(), "bob");
  });

  test("a form from another site, or from another browser", async () => {
    const browser = new Browser();
    const { page } = await begin(browser);
    const fields = { user: "alice", password: defaultPassword };
    expect((await browser.submit(page, fields, { origin: "https://evil.example" })).response.status).toBe(
      403,
    );
    expect((await browser.submit(page, fields, { origin: "null" })).response.status).toBe(403);
    expect((await new Browser().submit(page, fields)).response.status).toBe(400);
    expect((await browser.submit(page, fields, { origin: idp.issuer })).url.href).toStartWith(redirectUri);
  });

  test("another redirect address, no PKCE, plain PKCE", async () => {
    const elsewhere = await begin(new Browser(), { redirect_uri: `${publicUrl}/sign_in/callback/..` });
    expect(elsewhere.page.response.status).toBe(400);
    expect(elsewhere.page.text).toContain("Sign-in cannot continue");
    const none = { code_challenge: "", code_challenge_method: "" };
    const wrong: Record<string, string>[] = [none, { code_challenge_method: "plain" }];
    for (const extra of wrong) {
      const { page } = await begin(new Browser(), extra);
      expect(page.url.searchParams.get("error")).toBe("invalid_request");
    }
  });

  test("a code without its verifier, and a wrong client secret", async () => {
    const browser = new Browser();
    const { page } = await begin(browser);
    const { url } = await browser.submit(page, { user: "bob", password: defaultPassword });
    expect(claimsOf(url, client.randomPKCECodeVerifier())).rejects.toThrow();
    const body = new URLSearchParams({
      grant_type: "authorization_code",
      code: "x",
      redirect_uri: redirectUri,
    });
    const answer = await fetch(configuration.serverMetadata().token_endpoint!, {
      method: "POST",
      body,
      headers: { authorization: `Basic ${btoa("svc:wrong")}` },
    });
    expect(answer.status).toBe(401);
  });

  test("listening beyond loopback with the default password", async () => {
    const options = { port: 0, publicUrl, clientSecret, log: () => {} };
    await expect(startIdp({ ...options, host: "0.0.0.0" })).rejects.toThrow("SVC_TRIAL_PASSWORD");
    const open = await startIdp({ ...options, host: "0.0.0.0", password: "another one" });
    await open.stop();
  });
});

test("the page has a heading and labels, no script, no framing, and is not cached", async () => {
  const { page } = await begin(new Browser());
  expect(page.text).toContain('<html lang="en">');
  expect(page.text.match(/<h1>/g)).toHaveLength(1);
  for (const field of ["user", "password"]) expect(page.text).toContain(`<label for="${field}">`);
  expect(page.text).toContain("trial sign-in provider");
  expect(page.text).toContain(defaultPassword);
  expect(page.text).not.toContain("<script");
  expect(page.response.headers.get("cache-control")).toBe("no-store");
  const policy = page.response.headers.get("content-security-policy")!;
  for (const part of ["default-src 'none'", "frame-ancestors 'none'", `form-action 'self' ${publicUrl}`]) {
    expect(policy).toContain(part);
  }
});

test("a custom password is not shown", async () => {
  const own = await startIdp({
    host: "127.0.0.1",
    port: 0,
    publicUrl,
    clientSecret,
    password: "mine",
    log: () => {},
  });
  const { origin } = new URL(idp.issuer);
  const { page } = await begin(new Browser());
  expect(page.text).toContain("alice@example.com");
  const url = new URL(configuration.serverMetadata().authorization_endpoint!.replace(origin, own.issuer));
  url.search = new URLSearchParams({
    client_id: "svc",
    response_type: "code",
    scope: "openid",
    redirect_uri: redirectUri,
    code_challenge: "x".repeat(43),
    code_challenge_method: "S256",
  }).toString();
  const first = await fetch(url, { redirect: "manual" });
  const cookie = first.headers
    .getSetCookie()
    .map((line) => line.split(";")[0])
    .join("; ");
  const form = await fetch(new URL(first.headers.get("location")!, own.issuer), { headers: { cookie } });
  const text = await form.text();
  expect(text).toContain('name="password"');
  expect(text).not.toContain("mine");
  expect(text).not.toContain("alice@example.com");
  await own.stop();
});

test("--issuer: all addresses in the metadata are the issuer's, whatever the request's headers", async () => {
  const issuer = "https://id.example.com";
  const port = await freePort();
  const other = await startIdp({
    host: "127.0.0.1",
    port,
    issuer,
    publicUrl,
    clientSecret,
    log: (line) => logged.push(line),
  });
  try {
    const headers = { "x-forwarded-proto": "http", "x-forwarded-host": "evil.example", host: "evil.example" };
    const answer = await fetch(`http://127.0.0.1:${port}/.well-known/openid-configuration`, { headers });
    const metadata = (await answer.json()) as Record<string, unknown>;
    const addresses = Object.values(metadata).filter((value) => /^https?:/.test(String(value)));
    expect(addresses.length).toBeGreaterThan(4);
    expect(addresses.filter((address) => !String(address).startsWith(issuer))).toEqual([]);
  } finally {
    await other.stop();
  }
});
