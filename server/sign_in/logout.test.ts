import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { SignJWT } from "jose";
import { findClientCertificate, issueClientCertificate } from "../../core/auth/certificate/certificate.ts";
import { decideChallenge } from "../../core/auth/challenge/decide.ts";
import type { SignedInSession } from "../../core/auth/session/session.ts";
import type { Actor } from "../../core/context.ts";
import { auditLog, authorityKey, session, token } from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { newCertificateRequest } from "../../tests/support/domain/certificate_request.ts";
import { issuerKey } from "../../tests/support/http/issuer_keys.ts";
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
  server = await startTestServer({ rateGenerate: 100_000, mtlsUrl: "https://svc.example.com:8443" });
});
afterAll(() => server[Symbol.asyncDispose]());
/** Each test has a user of its own. */
let user: string;
let users = 0;
beforeEach(() => {
  users += 1;
  user = `user${users}@example.com`;
  server.issuer.user = user;
});

const post = (body: BodyInit, init: RequestInit = {}) =>
  server.fetch("/backchannel_logout", { method: "POST", body, ...init });

async function logout(claims: Record<string, unknown>): Promise<Response> {
  const iat = Math.floor(server.clock.now().getTime() / 1000);
  const all = {
    iss: server.issuer.url,
    aud: "svc",
    iat,
    exp: iat + 120,
    jti: crypto.randomUUID(),
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
    ...claims,
  };
  const { privateKey } = await issuerKey("own");
  const header = { alg: "RS256", kid: "own", typ: "logout+jwt" };
  const logout_token = await new SignJWT(all).setProtectedHeader(header).sign(privateKey);
  return post(new URLSearchParams({ logout_token }));
}

/** Signs in with a browser of its own, in a session of the issuer with this name, and gets a token and a certificate. */
async function signIn(sid?: string) {
  server.issuer.claims = { sid };
  const browser = new TestBrowser();
  const wanted = await newChallenge(server, { user });
  await decide(wanted, "approve", browser);
  const headers = { authorization: `Bearer ${(await poll(server, wanted)).body.encoded_jwt}` };
  const certificate = await server.fetch("/certificates/", {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ csr: newCertificateRequest() }),
  });
  const { sha256 } = (await certificate.json()) as { sha256: string };
  return {
    browser,
    /** What still works: the session, the token, the certificate. */
    works: async () => {
      const { authorizations } = server.issuer;
      const before = authorizations.length;
      await browser.open((await newChallenge(server, { user })).challengeUrl);
      return {
        session: authorizations.length === before,
        token: (await server.fetch("/whoami", { headers })).status === 200,
        certificate: "actor" in (await findClientCertificate(contextOf(), sha256)),
      };
    },
  };
}

const contextOf = () => ({ ...server, log: createLog("silent") });
const everything = { session: true, token: true, certificate: true };
const nothing = { session: false, token: false, certificate: false };
const sub = () => `sub-${user}`;

describe("a logout token of the issuer ends", () => {
  test("with a subject: everything of that user, and nothing of others", async () => {
    const other = await signIn();
    user = `other-${user}`;
    server.issuer.user = user;
    const [first, second] = [await signIn("a"), await signIn()];
    const answer = await logout({ sub: sub() });
    expect([answer.status, answer.headers.get("cache-control"), await answer.text()]).toEqual([
      200,
      "no-store",
      "",
    ]);
    expect([await first.works(), await second.works()]).toEqual([nothing, nothing]);
    user = user.replace("other-", "");
    expect(await other.works()).toEqual(everything);
  });

  test.each([true, false])("with a session: what came from that (with the subject: %p)", async (both) => {
    const [ended, kept] = [await signIn(`ended ${user}`), await signIn(`kept ${user}`)];
    const named = both ? { sub: sub() } : {};
    expect((await logout({ ...named, sid: `ended ${user}` })).status).toBe(200);
    expect([await ended.works(), await kept.works()]).toEqual([nothing, everything]);
  });

  test("with a subject and a session: also sign-ins of the user without a known session", async () => {
    const unnamed = await signIn();
    await logout({ sub: sub(), sid: "any" });
    expect(await unnamed.works()).toEqual(nothing);
  });

  test("with another user's session: nothing", async () => {
    const kept = await signIn(`mine ${user}`);
    await logout({ sub: "somebody else", sid: `mine ${user}` });
    expect(await kept.works()).toEqual(everything);
  });

  test("approvals that no terminal has collected", async () => {
    server.issuer.claims = {};
    const wanted = await newChallenge(server, { user });
    await decide(wanted, "approve");
    await logout({ sub: sub() });
    expect((await poll(server, wanted)).body).toEqual({ status: "expired" });
  });

  test("nothing twice: it is refused when it is sent again", async () => {
    const jti = crypto.randomUUID();
    expect((await logout({ sub: sub(), jti })).status).toBe(200);
    const later = await signIn();
    const answer = await logout({ sub: sub(), jti });
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: "invalid_request", error_description: "The logout token was used before" },
    ]);
    expect(await later.works()).toEqual(everything);
  });

  test("with a record in the audit log", async () => {
    await signIn("audited");
    await logout({ sub: sub() });
    const ended = and(eq(auditLog.action, "sign_in.ended"), eq(auditLog.actor, "system"));
    const rows = await server.db.select().from(auditLog).where(ended);
    expect(rows.map(({ data }) => data)).toContainEqual({ user, because: "logout" });
  });
});

test("an unknown user's logout is answered like a known one's", async () => {
  const answer = await logout({ sub: "nobody" });
  expect([answer.status, await answer.text()]).toEqual([200, ""]);
});

test("a page that was open before cannot approve any more", async () => {
  server.issuer.claims = {};
  const wanted = await newChallenge(server, { user });
  await new TestBrowser().open(wanted.challengeUrl);
  const { id, sessionHash } = await rowOf(server, wanted);
  const [before] = await server.db.select().from(session).where(eq(session.idHash, sessionHash!));
  await logout({ sub: sub() });
  const stale = before as SignedInSession;
  const approve = { id, decision: "approve" as const, session: stale, address: "127.0.0.1" };
  await expect(decideChallenge(contextOf(), approve)).rejects.toThrow("no longer signed in");
});

test("a certificate that is being issued meanwhile ends as well", async () => {
  await signIn();
  const [issued] = await server.db.select().from(token).where(eq(token.userName, user)).limit(1);
  const actor: Actor = {
    kind: "user",
    user,
    groups: [],
    admin: false,
    tokenId: issued!.jti,
    expiresAt: issued!.expiresAt,
  };
  const [made, ended] = await inTheWay<{ sha256?: string; status?: number }>(
    server.db,
    // The certificate is stored after its sign-in, and waits for this.
    (tx) => tx.select().from(authorityKey).for("update"),
    () => issueClientCertificate(contextOf(), actor, newCertificateRequest(), "127.0.0.1"),
    () => logout({ sub: sub() }),
  );
  if (made?.status !== "fulfilled" || ended?.status !== "fulfilled") throw new Error("not both");
  expect(ended.value.status).toBe(200);
  expect(await findClientCertificate(contextOf(), made.value.sha256!)).toEqual({ refused: "revoked" });
});

describe("a request is refused", () => {
  const form = "application/x-www-form-urlencoded";
  test.each<[string, BodyInit, string, number]>([
    ["without a token", "logout_tokens=x", form, 400],
    ["with another media type", "{}", "application/json", 400],
    ["that is too large", `logout_token=${"x".repeat(8192)}`, form, 413],
  ])("%s", async (_, body, type, status) => {
    server.clock.advance(60);
    const answer = await post(body, { headers: { "content-type": type } });
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([status, "no-store"]);
    if (status === 400) expect(await answer.json()).toMatchObject({ error: "invalid_request" });
  });

  test("after ten refused ones of its address in a minute", async () => {
    server.clock.advance(60);
    for (let i = 0; i < 10; i += 1) expect((await post(new URLSearchParams())).status).toBe(400);
    const answer = await logout({ sub: sub() });
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "6"]);
    server.clock.advance(60);
  });

  test("if the issuer's keys cannot be read", async () => {
    await using lonely = await server.another({ oidcIssuer: "http://127.0.0.1:9" });
    const body = new URLSearchParams({ logout_token: "x" });
    const answer = await lonely.fetch("/backchannel_logout", { method: "POST", body });
    expect(answer.status).toBe(503);
  });

  test("behind a proxy that signs people in", async () => {
    await using proxied = await server.another({
      sso: "proxy",
      proxyJwksUrl: "http://127.0.0.1:9/",
      proxyIssuer: "x",
      proxyAudience: "x",
    });
    const answer = await proxied.fetch("/backchannel_logout", {
      method: "POST",
      body: new URLSearchParams(),
    });
    expect(answer.status).toBe(404);
  });
});
