import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { eq } from "drizzle-orm";
import { generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { token as tokenTable } from "../drizzle/schema/index.ts";
import { newChallenge, signInToken, startTestServer, type TestServer } from "../tests/support/http/server.ts";

/** The routes that need no access token. Every other route must answer 401. */
const open = new Set([
  "GET /healthcheck",
  "GET /icon.svg",
  "GET /openapi",
  "GET /openapi/json",
  "GET /.well-known/jwks.json",
  "GET /.well-known/openid-configuration",
  "GET /access/ssh/:authority/ca.pub",
  "GET /access/ssh/:authority/krl",
  "GET /access/x509/:authority/ca.pem",
  "GET /access/x509/:authority/crl.pem",
  "GET /access/x509/:authority/crl/:authority_key_id",
  "GET /noauth/v1/:operation/:argument",
  "ALL /noauth/*",
  // Pages for the browser's session; an access token opens none of them.
  "GET /challenge:validator/:challengeToken",
  "GET /sign_in/callback",
  // For the issuer, which signs what it sends.
  "POST /backchannel_logout",
  "GET /",
  "GET /approve/:id",
  "POST /approve/:id",
  "POST /approve/:id/switch",
]);

let server: TestServer;
let good: string;
beforeAll(async () => {
  server = await startTestServer();
  good = await signInToken(server);
});
afterAll(() => server[Symbol.asyncDispose]());

function closedRoutes(): { method: string; path: string }[] {
  return server.app.routes.filter(
    ({ method, path }) => !open.has(`${method} ${path}`) && !/^\/app(\/|$)/.test(path),
  );
}

async function forge(claims: Record<string, unknown>, header: Record<string, unknown> = {}, key?: CryptoKey) {
  const signing = await server.keys.signing();
  const now = Math.floor(server.clock.now().getTime() / 1000);
  const jti = crypto.randomUUID();
  await server.db.insert(tokenTable).values({
    jti,
    userName: "alice@example.com",
    groups: ["admin"],
    issuedAt: server.clock.now(),
    expiresAt: new Date((now + 3600) * 1000),
  });
  const all = {
    iss: server.url,
    aud: "svc",
    sub: "alice@example.com",
    jti,
    iat: now,
    exp: now + 3600,
    ...claims,
  };
  return new SignJWT(all)
    .setProtectedHeader({ alg: signing.algorithm, kid: signing.kid, typ: "at+jwt", ...header })
    .sign(key ?? signing.privateKey);
}

const problem = (requestId: string) => ({
  type: "about:blank",
  title: "Not signed in",
  status: 401,
  detail: expect.any(String),
  code: "unauthenticated",
  request_id: requestId,
});
/** Weep drops its token for this code only. */
const weepRefusal = (requestId: string) => ({
  status: "error",
  code: "invalid_jwt",
  message: expect.any(String),
  errors: [expect.any(String)],
  requested_role: "",
  request_id: requestId,
});

describe("every route that requires a token", () => {
  test("is known to this test", () => {
    const routes = server.app.routes.map(({ method, path }) => `${method} ${path}`);
    expect([...open].filter((route) => !routes.includes(route))).toEqual([]);
    expect(closedRoutes().length).toBeGreaterThan(0);
  });

  test("answers 401 to any invalid token, in the same way", async () => {
    const stranger = (await generateKeyPair("ES256")).privateKey;
    const now = Math.floor(server.clock.now().getTime() / 1000);
    const tokens: Record<string, string | undefined> = {
      none: undefined,
      empty: "",
      nonsense: "nonsense",
      "three dots": "a.b.c",
      "alg none": new UnsecuredJWT({ sub: "alice@example.com", jti: crypto.randomUUID() })
        .setIssuer(server.url)
        .setAudience("svc")
        .setIssuedAt(server.clock.now())
        .setExpirationTime(now + 60)
        .encode(),
      "a stranger's key": await forge({}, {}, stranger),
      "an unknown key": await forge({}, { kid: "unknown" }, stranger),
      "no key id": await forge({}, { kid: undefined }),
      "another type": await forge({}, { typ: "JWT" }),
      "no type": await forge({}, { typ: undefined }),
      "another issuer": await forge({ iss: "https://evil.example" }),
      "another audience": await forge({ aud: "another" }),
      "no audience": await forge({ aud: undefined }),
      "no expiry": await forge({ exp: undefined }),
      "expired this second": await forge({ exp: now }),
      "no subject": await forge({ sub: undefined }),
      "another subject": await forge({ sub: "bob@example.com" }),
      "no token id": await forge({ jti: undefined }),
      "a token id that was never issued": await forge({ jti: crypto.randomUUID() }),
      "a token id that is none": await forge({ jti: "'; drop table token; --" }),
      "HMAC with the public key": await forge(
        {},
        { alg: "HS256" },
        (await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"])) as CryptoKey,
      ),
      "a changed payload": good.replace(/\.(.)/, (_, c) => `.${c === "A" ? "B" : "A"}`),
    };
    for (const { method, path } of closedRoutes()) {
      for (const [name, token] of Object.entries(tokens)) {
        const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
        const response = await server.fetch(path, { method, headers });
        expect(`${method} ${path}, ${name}: ${response.status}`).toBe(`${method} ${path}, ${name}: 401`);
        const rejected = token ? ', error="invalid_token"' : "";
        expect(response.headers.get("www-authenticate")).toBe(`Bearer realm="svc"${rejected}`);
        const requestId = response.headers.get("x-request-id")!;
        const isWeep = path.startsWith("/api/");
        expect(response.headers.get("content-type")).toBe(`application/${isWeep ? "" : "problem+"}json`);
        expect(await response.json()).toEqual(isWeep ? weepRefusal(requestId) : problem(requestId));
      }
    }
  });

  test.each(["Basic YTpi", "Bearer", "bearer  ", "Challenge abc", "Token x", "Bearer a b"])(
    "answers 401 to the header Authorization: %s",
    async (authorization) => {
      for (const { method, path } of closedRoutes()) {
        expect((await server.fetch(path, { method, headers: { authorization } })).status).toBe(401);
      }
    },
  );

  test("answers 401 before it looks at the body", async () => {
    const requests: { type: string; body: BodyInit; encoding?: string }[] = [
      { type: "application/json", body: "{" },
      { type: "application/json", body: "{}", encoding: "gzip" },
      { type: "application/x-www-form-urlencoded", body: new Uint8Array([0xff]) },
      { type: "text/plain", body: "a".repeat(1024 * 1024 + 1) },
    ];
    const withBody = closedRoutes().filter(({ method }) => method !== "GET");
    for (const { method, path } of withBody)
      for (const { type, body, encoding } of requests) {
        const headers = {
          authorization: "Bearer nonsense",
          "content-type": type,
          ...(encoding === undefined ? {} : { "content-encoding": encoding }),
        };
        const { status } = await server.fetch(path, { method, headers, body });
        expect(`${method} ${path}: ${status}`).toBe(`${method} ${path}: 401`);
      }
  });

  test("accepts the same forged token when it is valid", async () => {
    // Guards the test itself: if `forge` were broken in general, every check above would pass.
    const headers = { authorization: `Bearer ${await forge({})}` };
    expect((await server.fetch("/whoami", { headers })).status).toBe(200);
  });
});

describe("GET /whoami", () => {
  test("returns user, groups and expiry, by header or by cookie", async () => {
    const ways: Record<string, string>[] = [
      { authorization: `Bearer ${good}` },
      { cookie: `a=b; svc_auth=${good}; c=d` },
    ];
    for (const headers of ways) {
      const response = await server.fetch("/whoami", { headers });
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({
        user: "alice@example.com",
        groups: ["admin", "oncall"],
        admin: true,
        expires_at: new Date(server.clock.now().getTime() + 3600_000).toISOString(),
      });
    }
  });

  test("does not accept the session cookie, nor two tokens", async () => {
    expect((await server.fetch("/whoami", { headers: { cookie: `svc_session=${good}` } })).status).toBe(401);
    expect(
      (await server.fetch("/whoami", { headers: { cookie: `svc_auth=${good}; svc_auth=x` } })).status,
    ).toBe(401);
  });

  test("stops at the token's expiry", async () => {
    await using other = await startTestServer();
    const headers = { authorization: `Bearer ${await signInToken(other)}` };
    other.clock.advance(3599);
    expect((await other.fetch("/whoami", { headers })).status).toBe(200);
    other.clock.advance(1);
    const response = await other.fetch("/whoami", { headers });
    expect(response.status).toBe(401);
    expect(((await response.json()) as { detail: string }).detail).toContain("expired");
  });

  test("works with and without the trailing slash", async () => {
    const headers = { authorization: `Bearer ${good}` };
    expect((await server.fetch("/whoami/", { headers })).status).toBe(200);
  });
});

describe("DELETE /tokens/current", () => {
  test("revokes the token at once; a second call is 401", async () => {
    const headers = { authorization: `Bearer ${await forge({})}` };
    expect((await server.fetch("/whoami", { headers })).status).toBe(200);
    const response = await server.fetch("/tokens/current", { method: "DELETE", headers });
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
    expect((await server.fetch("/whoami", { headers })).status).toBe(401);
    expect((await server.fetch("/tokens/current", { method: "DELETE", headers })).status).toBe(401);
    const [row] = await server.db
      .select()
      .from(tokenTable)
      .where(eq(tokenTable.userName, "alice@example.com"));
    expect(row).toBeDefined();
  });

  test("by cookie from another site is refused", async () => {
    const cookie = `svc_auth=${await forge({})}`;
    const remove = (headers = {}) =>
      server.fetch("/tokens/current", { method: "DELETE", headers: { cookie, ...headers } });
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { referer: "https://evil.example/page" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ])
      expect((await remove(headers)).status).toBe(403);
    expect((await server.fetch("/whoami", { headers: { cookie } })).status).toBe(200);
    expect((await remove()).status).toBe(204);
  });
});

describe("GET /healthcheck", () => {
  test("answers 200 when healthy", async () => {
    const response = await server.fetch("/healthcheck");
    expect(response.status).toBe(200);
    const body = (await response.json()) as { revision: { current: string[]; head: string[] } };
    expect(body).toMatchObject({ status: "ok", database: "ok", revision: { status: "ok" } });
    expect(body.revision.current).toEqual(body.revision.head);
  });

  test("answers 503 when the schema is outdated, missing, or of a newer release", async () => {
    await using other = await startTestServer();
    const check = async () => {
      const response = await other.fetch("/healthcheck");
      return `${response.status} ${((await response.json()) as { revision: { status: string } }).revision.status}`;
    };
    await other.db.execute("insert into revision (id, checksum, down_sql) values ('9999_future', '', '')");
    expect(await check()).toBe("503 newer");
    await other.db.execute("delete from revision");
    expect(await check()).toBe("503 behind");
    await other.db.execute("drop table revision");
    expect(await check()).toBe("503 behind");
  });

  test("answers 503 when the database does not answer, without saying why", async () => {
    const other = await startTestServer();
    const { openSql } = await import("../drizzle/client.ts");
    const name = new URL(other.databaseUrl).pathname.slice(1);
    const admin = openSql(other.databaseUrl.replace(/\/[^/]*$/, "/postgres"), { max: 1 });
    await admin.unsafe(`alter database "${name}" allow_connections false`);
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
    const response = await other.fetch("/healthcheck");
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({
      status: "unavailable",
      database: "unreachable",
      keys: "unknown",
      revision: { status: "unknown", current: [], head: [] },
    });
    const failed = await other.fetch("/noauth/v1/challenge_generator/alice");
    expect(failed.status).toBe(503);
    const body = (await failed.json()) as { status: string; detail: string };
    expect(body.status).toBe("unavailable");
    expect(body.detail).not.toContain(name);
    await admin.unsafe(`alter database "${name}" allow_connections true`);
    await admin.end();
    await other[Symbol.asyncDispose]();
  });
});

describe("an unknown path", () => {
  test.each(["/nothing", "/whoami/x/y", "/documents/../whoami/x", "/approve/1", "/approve/'--"])(
    "%s is 404, and is not echoed",
    async (path) => {
      const response = await server.fetch(path);
      expect(response.status === 404 || response.status === 400).toBe(true);
      expect(await response.text()).not.toContain("'--");
    },
  );

  test.each(["a b", "", "[::", "%zz", "a/b"])(
    "a Host of %p causes no development page and does not expose T",
    async (host) => {
      const secret = "a".repeat(43);
      const answer = await raw(`GET /noauth/v1/challenge_poller/${secret} HTTP/1.1\r\nHost: ${host}\r\n`);
      expect(answer).toMatch(/^HTTP\/1.1 4\d\d /);
      expect(answer).not.toContain(secret);
      expect(answer).not.toContain("<html");
    },
  );

  test("a host name of any length reaches the same routes", async () => {
    for (const host of ["a", "ab", "svc", "abcd", "svc.example.com"]) {
      expect(await raw(`GET /healthcheck HTTP/1.1\r\nHost: ${host}\r\n`)).toStartWith("HTTP/1.1 200 ");
      expect(await raw(`GET /private/healthcheck HTTP/1.1\r\nHost: ${host}\r\n`)).toStartWith(
        "HTTP/1.1 404 ",
      );
    }
  });

  test("only the path can make a request a poll", async () => {
    const { pollPath, verifier } = await newChallenge(server);
    const headers = { authorization: `Challenge ${verifier}` };
    await server.fetch(pollPath, { headers });
    expect((await server.fetch(`/whoami?x=${pollPath}`, { headers })).status).toBe(401);
    expect((await server.fetch(`/nowhere${pollPath}`, { headers })).status).toBe(404);
  });
});

describe("GET /.well-known/jwks.json", () => {
  test("contains public parts only", async () => {
    const body = (await (await server.fetch("/.well-known/jwks.json")).json()) as { keys: object[] };
    expect(body.keys).toEqual([
      {
        kty: "EC",
        crv: "P-256",
        x: expect.any(String),
        y: expect.any(String),
        kid: expect.any(String),
        alg: "ES256",
        use: "sig",
      },
    ]);
  });
});

/** Sends a request line and headers verbatim, and returns the whole response. */
async function raw(head: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => {
    socket.write(`${head}Connection: close\r\n\r\n`);
  });
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.on("close", () => resolve(text)).on("error", reject);
  return promise;
}
