import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { allowInsecureRequests, discovery } from "openid-client";
import { signFederationToken } from "../../core/federation/token.ts";
import { token as tokenTable } from "../../drizzle/schema/index.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { createUsualRole, usualRole } from "../../tests/support/domain/usual_role.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
let alice: Person;
let incident: string;

beforeAll(async () => {
  server = await startTestServer({ pluginCredential: "oidc-token" });
  admin = await personOf(server, "root@example.com", ["admin"]);
  alice = await personOf(server, "alice@example.com", ["oncall"]);
  const { incidentId } = await insertIncident(server.db, server.clock.now());
  const [row] = await server.db.execute<{ name: string }>(
    sql`select name from incident where id = ${incidentId}`,
  );
  incident = row!.name;
});
afterAll(() => server[Symbol.asyncDispose]());

const audience = "https://vault.example.com";
const makeRole = (settings: object = {}) =>
  createUsualRole(admin, { plugin: "oidc-token", settings: { audience, ...settings } });

async function issue(role: string, more: object = {}) {
  const { http, body } = await alice.call("POST", "/access/leases/", { role, ...more });
  expect([http, body.detail]).toEqual([201, undefined]);
  return body;
}

/** A verifier that knows only the issuer's address. */
async function outsider(issuer = server.url) {
  const found = await discovery(new URL(issuer), "vault", undefined, undefined, {
    execute: [allowInsecureRequests],
  });
  const metadata = found.serverMetadata();
  const keys = createRemoteJWKSet(new URL(metadata.jwks_uri!));
  return {
    metadata,
    verify: (token: string, expected: string) =>
      jwtVerify(token, keys, {
        issuer: metadata.issuer,
        audience: expected,
        algorithms: metadata.id_token_signing_alg_values_supported as string[],
        requiredClaims: ["sub", "exp", "iat", "jti"],
      }),
  };
}

test("a token can be verified with only the issuer's address", async () => {
  const role = await makeRole();
  const lease = await issue(role, { incident });
  const { kind, fields } = lease.credential;
  const subject = `role:${role}:user:alice@example.com`;
  expect([kind, fields]).toEqual([
    "token",
    { token: expect.any(String), audience, subject, expiration: lease.expires_at },
  ]);
  const { verify, metadata } = await outsider();
  expect(metadata.issuer).toBe(server.url);
  const { payload, protectedHeader } = await verify(fields.token, audience);
  expect(protectedHeader).toEqual({ alg: "ES256", typ: "JWT", kid: expect.any(String) });
  expect(payload).toEqual({
    iss: server.url,
    aud: audience,
    sub: subject,
    jti: expect.any(String),
    iat: expect.any(Number),
    exp: payload.iat! + 300,
    user: "alice@example.com",
    role,
    lease: lease.id,
    incident,
  });
  expect(new Date(payload.exp! * 1000).toISOString()).toBe(lease.expires_at);
  expect(verify(fields.token, "https://another.example.com")).rejects.toThrow('"aud"');
  const other = (await issue(role)).credential.fields.token;
  expect(decodeJwt(other).jti).not.toBe(payload.jti);
});

test("with another issuer, the discovery document has the contents to publish there", async () => {
  await using elsewhere = await server.another({ federationIssuer: "https://keys.example.com/svc/" });
  const response = await elsewhere.fetch("/.well-known/openid-configuration");
  expect(response.headers.get("cache-control")).toBe("public, max-age=300");
  expect(await response.json()).toEqual({
    issuer: "https://keys.example.com/svc",
    jwks_uri: "https://keys.example.com/svc/.well-known/jwks.json",
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES256"],
    scopes_supported: ["openid"],
    claims_supported: ["iss", "aud", "sub", "iat", "exp", "jti", "user", "role", "lease", "incident"],
  });
  const slug = await makeRole();
  const person = await personOf(elsewhere, "alice@example.com", ["oncall"]);
  const { body } = await person.call("POST", "/access/leases/", { role: slug });
  expect(decodeJwt(body.credential.fields.token).iss).toBe("https://keys.example.com/svc");
  // The server's access tokens are not affected.
  expect((await person.call("GET", "/whoami")).http).toBe(200);
});

test("the discovery document names the signature algorithm", async () => {
  await using other = await startTestServer({ tokenAlgorithm: "Ed25519" });
  const body = (await (await other.fetch("/.well-known/openid-configuration")).json()) as object;
  expect(body).toMatchObject({ id_token_signing_alg_values_supported: ["Ed25519"] });
});

describe("a user", () => {
  test("cannot choose the audience, subject or lifetime", async () => {
    const role = await makeRole({ subject: "deploy:{incident}", lifetime: 120 });
    for (const field of ["audience", "subject", "lifetime", "settings", "sub", "user"]) {
      const { http, body } = await alice.call("POST", "/access/leases/", { role, incident, [field]: "x" });
      expect([http, body.code]).toEqual([400, "invalid_input"]);
    }
    const { fields } = (await issue(role, { incident, duration: 7200 })).credential;
    const { iat, exp, sub, aud } = decodeJwt(fields.token);
    expect([sub, aud, exp! - iat!]).toEqual([`deploy:${incident}`, audience, 120]);
  });

  test("can request a shorter token", async () => {
    const { iat, exp } = decodeJwt((await issue(await makeRole(), { duration: 60 })).credential.fields.token);
    expect(exp! - iat!).toBe(60);
  });

  test("must name an incident if the subject contains it", async () => {
    const role = await makeRole({ subject: "deploy:{incident}" });
    const { http, body } = await alice.call("POST", "/access/leases/", { role });
    expect([http, body.field, body.detail]).toEqual([
      400,
      "incident",
      "oidc-token failed: The subject of the token contains {incident}: name one with --incident",
    ]);
  });
});

test.each([
  ["the audience of svc", { audience: "svc" }],
  ["no audience", { audience: "" }],
  ["an audience with a space", { audience: "a b" }],
  ["a lifetime over five minutes", { lifetime: 301 }],
  ["an unknown placeholder", { subject: "{groups}" }],
  ["an unclosed placeholder", { subject: "{user" }],
  ["a subject with a newline", { subject: "user:{user}\n" }],
])("a role is refused with %s", async (_, settings) => {
  const { http, body } = await admin.call("POST", "/access/roles/", {
    ...usualRole,
    slug: "bad",
    description: "",
    plugin: "oidc-token",
    settings: { audience, ...settings },
  });
  expect([http, body.field]).toEqual([400, `settings.${Object.keys(settings)[0]}`]);
});

describe("federation tokens and access tokens are never accepted for each other", () => {
  test("by the API, even if the id of a federation token is in the database", async () => {
    const { token } = (await issue(await makeRole({ subject: "{user}" }))).credential.fields;
    const { jti } = decodeJwt(token);
    const now = server.clock.now();
    await server.db.insert(tokenTable).values({
      jti: jti!,
      userName: "alice@example.com",
      groups: ["admin"],
      issuedAt: now,
      expiresAt: new Date(now.getTime() + 3_600_000),
    });
    const ways: Record<string, string>[] = [
      { authorization: `Bearer ${token}` },
      { cookie: `svc_auth=${token}` },
    ];
    for (const headers of ways) expect((await server.fetch("/whoami", { headers })).status).toBe(401);
  });

  test("elsewhere: access tokens are for svc, which no federation token can be for", async () => {
    const access = await signInToken(server);
    expect([decodeProtectedHeader(access).typ, decodeJwt(access).aud]).toEqual(["at+jwt", "svc"]);
    const { verify } = await outsider();
    expect(verify(access, audience)).rejects.toThrow('"aud"');
    const context = { db: server.db, clock: server.clock, config: server.config, log: {} as never };
    const claims = { subject: "{user}", user: "alice@example.com", role: "x", leaseId: 1, seconds: 60 };
    expect(
      signFederationToken(context, { ...claims, audience: "svc", issuedAt: new Date() }),
    ).rejects.toThrow("reserved for svc itself");
  });
});

test("the role passes the check, and a lease expires with its token", async () => {
  const role = await makeRole();
  expect((await admin.call("GET", `/access/roles/${role}/check`)).body).toEqual({ problems: [] });
  const lease = await issue(role);
  const seconds = (Date.parse(lease.expires_at) - Date.parse(lease.created_at)) / 1000;
  expect(seconds).toBeGreaterThan(298);
  expect(seconds).toBeLessThanOrEqual(300);
  const [row] = await server.db.execute<{ text: string }>(
    sql`select l::text as text from access_lease l where id = ${lease.id}`,
  );
  expect(row!.text).not.toContain(lease.credential.fields.token.split(".")[2]);
});
