import { describe, expect, test } from "bun:test";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { eq } from "drizzle-orm";
import {
  findClientCertificate,
  freshTokenSeconds,
  issueClientCertificate,
  longestCertificateSeconds,
  mostCertificates,
  thumbprintOf,
} from "../../core/auth/certificate/certificate.ts";
import { rotateAuthority } from "../../core/authority/authority.ts";
import { type Actor, tokenOf } from "../../core/context.ts";
import { auditLog, authorityKey, clientCertificate, token } from "../../drizzle/schema/index.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { newCertificateRequest, newP256Key } from "../../tests/support/domain/certificate_request.ts";
import { usualRole } from "../../tests/support/domain/usual_role.ts";
import { type CertificateServer, useCertificateServer } from "../../tests/support/http/certificate_server.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer } from "../../tests/support/http/server.ts";
import { openssl } from "../../tests/support/process/openssl.ts";

let { server, context, file, newUser, issue } = {} as CertificateServer;
useCertificateServer((given) => {
  ({ server, context, file, newUser, issue } = given);
});

const csrOf = newCertificateRequest;

async function actorOf(sha256: string): Promise<Actor> {
  const found = await findClientCertificate(context, sha256);
  if ("refused" in found) throw new Error(found.refused);
  return found.actor;
}

const renew = async (sha256: string) =>
  issueClientCertificate(context, await actorOf(sha256), csrOf(), "192.0.2.1");

async function atLater<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  server.clock.advance(seconds);
  try {
    return await work();
  } finally {
    server.clock.advance(-seconds);
  }
}

test("a certificate authenticates the user, whatever its request says", async () => {
  const alice = newUser();
  const key = newP256Key();
  const person = await personOf(server, alice, ["oncall"]);
  const { body } = await person.call("POST", "/certificates/", { csr: csrOf(key) });
  expect(body.mtls_url).toBe("https://svc.example.com:8443");
  const [certificate, ca] = [await file(body.certificate), await file(body.chain)];
  expect(openssl("verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", ca, certificate)).toEndWith(
    "OK\n",
  );
  const read = new X509Certificate(body.certificate);
  expect([read.ca, read.subject, read.subjectAltName, read.serialNumber.toLowerCase()]).toEqual([
    false,
    `CN=${alice}`,
    `email:${alice}`,
    body.serial,
  ]);
  expect(read.checkPrivateKey(key)).toBe(true);
  expect(body.sha256).toBe(thumbprintOf(read.raw));
  const hours = (Date.parse(read.validTo) - server.clock.now().getTime()) / 3_600_000;
  expect(Math.round(hours * 3600)).toBeWithin(longestCertificateSeconds - 5, longestCertificateSeconds + 1);
  expect(await actorOf(body.sha256)).toMatchObject({
    kind: "user",
    user: alice,
    groups: ["oncall"],
    admin: false,
    expiresAt: new Date(read.validTo),
    certificate: { sha256: body.sha256 },
  });
});

describe("a request is refused", () => {
  const pem = (bytes: Buffer) =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
  const bytesOf = (csr: string) => Buffer.from(csr.replaceAll(/-----.*-----|\s/g, ""), "base64");
  test.each<[string, (csr: string) => string | Promise<string>, string]>([
    ["without PEM", () => "hello", "not a single request in PEM"],
    ["with two", (csr) => csr + csr, "not a single request in PEM"],
    ["that is long", (csr) => csr.replace("\n", `\n${"A".repeat(8000)}\n`), "not a single request in PEM"],
    ["that is truncated", (csr) => pem(bytesOf(csr).subarray(0, 90)), "it cannot be read"],
    ["that is no request", () => pem(Buffer.from("hello")), "it cannot be read"],
    [
      "with another key",
      async (csr) => {
        const [bytes, other] = [bytesOf(csr), bytesOf(csrOf())];
        const at = bytes.indexOf(Buffer.from("03420004", "hex"));
        other.copy(bytes, at, other.indexOf(Buffer.from("03420004", "hex")), at + 68);
        return pem(bytes);
      },
      "its signature does not match its key|cannot be read",
    ],
    [
      "with a changed signature",
      (csr) => {
        const bytes = bytesOf(csr);
        bytes[bytes.length - 3]! ^= 1;
        return pem(bytes);
      },
      "its signature does not match its key",
    ],
    [
      "for P-384",
      () => csrOf(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey),
      "must be a P-256 key",
    ],
    [
      "for RSA",
      () => csrOf(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey),
      "must be a P-256 key",
    ],
    ["for Ed25519", () => csrOf(generateKeyPairSync("ed25519").privateKey), "must be a P-256 key"],
  ])("%s", async (_, change, why) => {
    const person = await personOf(server, newUser());
    const { http, body } = await person.call("POST", "/certificates/", { csr: await change(csrOf()) });
    expect([http, body.field]).toEqual([400, "csr"]);
    expect(body.detail).toMatch(new RegExp(why));
  });

  test("with a token older than a few minutes", async () => {
    const person = await personOf(server, newUser());
    const post = async () => (await person.call("POST", "/certificates/", { csr: csrOf() })).http;
    expect(await atLater(freshTokenSeconds - 5, post)).toBe(201);
    expect(await atLater(freshTokenSeconds + 5, post)).toBe(403);
  });

  test("by a server that accepts no client certificates", async () => {
    await using other = await server.another({ mtlsUrl: undefined });
    const person = await personOf(other, newUser());
    const { http, body } = await person.call("POST", "/certificates/", { csr: csrOf() });
    expect([http, body.detail]).toEqual([409, expect.stringContaining("--mtls-port")]);
  });

  test("for a user outside the authority's domain", async () => {
    await issue();
    await using other = await server.another({ domain: "example.org" });
    const stranger = await personOf(other, "carol@example.org");
    const { http, body } = await stranger.call("POST", "/certificates/", { csr: csrOf() });
    expect([http, body.detail]).toEqual([403, "Client certificates are only for users of SVC_DOMAIN"]);
  });

  test("beyond one user's maximum, also of concurrent requests", async () => {
    const { person, sha256 } = await issue();
    const requests = Array.from({ length: mostCertificates + 5 }, async () =>
      person.call("POST", "/certificates/", { csr: csrOf() }),
    );
    const answers = (await Promise.all(requests)).map(({ http }) => http);
    expect(answers.filter((http) => http === 201)).toHaveLength(mostCertificates - 1);
    expect(answers.filter((http) => http === 409)).toHaveLength(6);
    await expect(renew(sha256)).rejects.toThrow(`${mostCertificates} valid certificates`);
    const { body } = await person.call("GET", "/certificates/?valid=true&limit=1");
    await person.call("DELETE", `/certificates/${body.items[0].serial}`);
    expect((await renew(sha256)).user).toBe(body.items[0].user);
  });
});

describe("a renewal", () => {
  test("stays within its sign-in, and is revoked with it", async () => {
    const { person, ...first } = await issue();
    const { certificateLifetime } = server.config;
    const day = 24 * 3600;
    let sha256 = first.sha256;
    for (let at = 0; at + day / 2 < certificateLifetime; at += day / 2) {
      const next = await atLater(at + day / 2, async () =>
        renew(sha256).catch((error: Error) => error.message),
      );
      if (typeof next === "string") throw new Error(next);
      expect(next.expiresAt.getTime()).toBeLessThanOrEqual(Date.parse(first.sign_in_expires_at));
      ({ sha256 } = next);
    }
    const ended = await atLater(certificateLifetime + 1, () => findClientCertificate(context, sha256));
    expect(ended).toEqual({ refused: "expired" });
    await person.call("DELETE", `/certificates/${first.serial}`);
    expect(await findClientCertificate(context, sha256)).toEqual({ refused: "revoked" });
    const rows = await server.db
      .select({ action: auditLog.action })
      .from(auditLog)
      .where(eq(auditLog.actor, first.user));
    const actions = rows.map(({ action }) => action).filter((action) => action.startsWith("certificate."));
    expect([...new Set(actions)].sort()).toEqual([
      "certificate.issued",
      "certificate.renewed",
      "certificate.revoked",
    ]);
  });

  test("of a sign-in that was revoked meanwhile is refused", async () => {
    const { person, serial, sha256 } = await issue();
    const actor = await actorOf(sha256);
    await person.call("DELETE", `/certificates/${serial}`);
    await expect(issueClientCertificate(context, actor, csrOf(), "192.0.2.1")).rejects.toThrow("has ended");
  });
});

describe("a certificate is refused", () => {
  test("if we never issued it", async () => {
    expect(await findClientCertificate(context, thumbprintOf(Buffer.from("x")))).toEqual({
      refused: "unknown",
    });
  });

  test("once it has expired", async () => {
    const { sha256 } = await issue();
    const find = () => findClientCertificate(context, sha256);
    expect(await atLater(longestCertificateSeconds - 5, find)).toMatchObject({ actor: {} });
    expect(await atLater(longestCertificateSeconds + 1, find)).toEqual({ refused: "expired" });
  });

  test("with a key of the authority that is revoked", async () => {
    await using other = await startTestServer({ mtlsUrl: "https://svc.example.com:8443" });
    const root = await personOf(other, "root@example.com", ["admin"]);
    const { body } = await root.call("POST", "/certificates/", { csr: csrOf() });
    const of = { ...other, log: context.log };
    const found = await findClientCertificate(of, body.sha256);
    if ("refused" in found) throw new Error(found.refused);
    await rotateAuthority(other, found.actor, { kind: "x509", name: "client", revoke: true });
    expect(await findClientCertificate(of, body.sha256)).toEqual({ refused: "revoked" });
  });
});

test("no certificate is issued with a key that is revoked meanwhile", async () => {
  await using other = await startTestServer({ mtlsUrl: "https://svc.example.com:8443" });
  const root = await personOf(other, "root@example.com", ["admin"]);
  expect((await root.call("POST", "/certificates/", { csr: csrOf() })).http).toBe(201);
  const [answer] = await inTheWay(
    other.db,
    (tx) => tx.update(authorityKey).set({ revokedAt: other.clock.now(), expiresAt: other.clock.now() }),
    () => root.call("POST", "/certificates/", { csr: csrOf() }),
  );
  expect(answer).toMatchObject({
    value: { http: 409, body: { detail: "The authority has a new key: try again" } },
  });
});

test("a rotation of the authority ends no certificate: both keys are trusted, each with a revocation list", async () => {
  await using other = await startTestServer({ mtlsUrl: "https://svc.example.com:8443" });
  other.clock.advance((Date.now() - other.clock.now().getTime()) / 1000);
  const root = await personOf(other, "root@example.com", ["admin"]);
  const sign = async () => {
    const { http, body } = await root.call("POST", "/certificates/", { csr: csrOf() });
    expect(http).toBe(201);
    return body as { certificate: string; sha256: string; chain: string; serial: string };
  };
  const found = (sha256: string) => findClientCertificate({ ...other, log: context.log }, sha256);
  const before = await sign();
  expect((await root.call("POST", "/access/authority_keys/", { kind: "x509", name: "client" })).http).toBe(
    201,
  );
  const during = await sign();
  // The day of the overlap is over.
  await other.db.update(authorityKey).set({ activeAt: new Date(Date.now() - 1000) });
  const after = await sign();
  expect([during.chain === before.chain, after.chain === before.chain]).toEqual([true, false]);
  await root.call("DELETE", `/certificates/${before.serial}`);
  const text = async (path: string) => (await other.fetch(`/access/x509/client/${path}`)).text();
  const [trusted, lists] = [await text("ca.pem"), await text("crl.pem")];
  expect(trusted.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  expect(lists.match(/BEGIN X509 CRL/g)).toHaveLength(2);
  const anchors = await file(trusted + lists);
  const said = [before, during, after].map(async ({ certificate }) =>
    openssl("verify", "-crl_check", "-purpose", "sslclient", "-CAfile", anchors, await file(certificate)),
  );
  expect(await Promise.all(said)).toEqual([
    expect.stringContaining("certificate revoked"),
    expect.stringContaining(": OK"),
    expect.stringContaining(": OK"),
  ]);
  expect(await found(before.sha256)).toEqual({ refused: "revoked" });
  for (const { sha256 } of [during, after]) expect(await found(sha256)).toMatchObject({ actor: {} });
});

test("groups are those of the user's latest sign-in", async () => {
  const { user, sha256 } = await issue(newUser(), ["admin", "oncall"]);
  expect((await actorOf(sha256)).admin).toBe(true);
  server.clock.advance(2);
  await personOf(server, user, ["oncall"]);
  expect(await actorOf(sha256)).toMatchObject({ admin: false, groups: ["oncall"] });
  expect((await renew(sha256)).user).toBe(user);
  expect((await actorOf(sha256)).admin).toBe(false);
});

test("users list and revoke their own certificates, and admins everybody's", async () => {
  const [hers, his] = [await issue(), await issue()];
  const admin = await personOf(server, newUser(), ["admin"]);
  const list = async (person: typeof admin, query = "") =>
    (await person.call("GET", `/certificates/${query}`)).body.items;
  expect(await list(hers.person)).toEqual([
    {
      serial: hers.serial,
      user: hers.user,
      sha256: hers.sha256,
      created_at: hers.created_at,
      expires_at: hers.expires_at,
      sign_in_expires_at: hers.sign_in_expires_at,
      revoked_at: null,
    },
  ]);
  const serials = (await list(admin)).map(({ serial }: { serial: string }) => serial);
  expect(serials).toContain(hers.serial);
  expect(serials).toContain(his.serial);
  expect(await list(admin, `?user=${his.user}`)).toHaveLength(1);
  expect(await list(hers.person, `?user=${his.user}`)).toEqual([]);
  expect((await hers.person.call("DELETE", `/certificates/${his.serial}`)).http).toBe(404);
  expect(await findClientCertificate(context, his.sha256)).toMatchObject({ actor: {} });
  for (let i = 0; i < 2; i++)
    expect((await admin.call("DELETE", `/certificates/${his.serial}`)).http).toBe(204);
  expect(await list(his.person, "?valid=true")).toEqual([]);
  expect((await list(his.person))[0].revoked_at).not.toBeNull();
});

test("no access role can sign with the authority that stands for users", async () => {
  const admin = await personOf(server, newUser(), ["admin"]);
  const role = (authority: string) => ({
    ...usualRole,
    slug: `web-${authority}`,
    description: "",
    plugin: "x509-ca",
    settings: { authority },
    groups: ["*"],
  });
  expect((await admin.call("POST", "/access/roles/", role("clients"))).http).toBe(201);
  expect((await admin.call("POST", "/access/roles/", role("client"))).http).toBe(400);
});

test("certificates are deleted with the row of their sign-in", async () => {
  const { sha256 } = await issue();
  const actor = await actorOf(sha256);
  await server.db.delete(token).where(eq(token.jti, tokenOf(actor)));
  const left = await server.db.select().from(clientCertificate).where(eq(clientCertificate.sha256, sha256));
  expect(left).toEqual([]);
});
