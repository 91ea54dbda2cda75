import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { eq } from "drizzle-orm";
import { type CertificateContext, identifyCertificate } from "../../core/auth/certificate/identify.ts";
import { rotateAuthority } from "../../core/authority/authority.ts";
import type { Context } from "../../core/context.ts";
import { incident, token as tokenTable } from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { OrganisationAuthorities } from "../../platform/x509/authorities.ts";
import { signedIn } from "../../tests/support/domain/actor.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import {
  type CertificateFolder,
  derOf,
  type Issued,
  thumbprintOf,
  tlsWith,
  withOtherSignature,
} from "../../tests/support/http/client_certificates.ts";
import { type MtlsServer, startMtlsServer } from "../../tests/support/http/mtls.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { decide, newChallenge, poll, type TestServer } from "../../tests/support/http/server.ts";
import { within } from "../../tests/support/process/until.ts";

// Certificates of our own authority, without any other authority in the settings.

let mtls: MtlsServer;
let server: TestServer;
let certificates: CertificateFolder;
beforeAll(async () => {
  mtls = await startMtlsServer();
  ({ server, certificates } = mtls);
});
afterAll(() => mtls[Symbol.asyncDispose]());

const ask = (client: Issued, path = "/whoami", init: BunFetchRequestInit = {}) =>
  fetch(`${mtls.url}${path}`, { tls: tlsWith(client), keepalive: false, ...init });

let made = 0;
/** A certificate as `svc login --certificate` gets one. */
async function issue(user: string, groups: string[] = []): Promise<Issued & { serial: string }> {
  made += 1;
  const name = `own-${made}`;
  const [key, certificate] = [certificates.at(`${name}.key`), certificates.at(`${name}.pem`)];
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(key, privateKey.export({ type: "pkcs8", format: "pem" }));
  const csr = certificates.run("req", "-new", "-key", key, "-subj", "/CN=x");
  const person = await personOf(server, user, groups);
  const { http, body } = await person.call("POST", "/certificates/", { csr });
  expect(http).toBe(201);
  writeFileSync(certificate, body.certificate as string);
  return { name, key, certificate, chain: certificate, serial: body.serial as string };
}

const lastReason = () =>
  server.logged
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === "client certificate refused")
    .at(-1);

test("a certificate of ours stands for its user, with the groups of the sign-in", async () => {
  const client = await issue("carol@example.com", ["oncall"]);
  const answer = await ask(client);
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { user: "carol@example.com", groups: ["oncall"] },
  ]);
});

test("a revoked one is refused, also on open connections, and Weep gets its code", async () => {
  const client = await issue("dave@example.com");
  const keep = { keepalive: true };
  expect((await ask(client, "/whoami", keep)).status).toBe(200);
  expect((await ask(client, `/certificates/${client.serial}`, { method: "DELETE" })).status).toBe(204);
  const answer = await ask(client, "/whoami", keep);
  expect([answer.status, await answer.json()]).toMatchObject([
    401,
    { detail: "The client certificate has been revoked" },
  ]);
  expect(lastReason()).toMatchObject({ reason: "revoked", certificate: thumbprintOf(client.certificate) });
  const weep = await ask(client, "/api/v1/get_roles?all=true");
  expect([weep.status, await weep.json()]).toMatchObject([401, { code: "905" }]);
});

test("a revoked one is refused with another valid signature, although our authority is among the others", async () => {
  // The authority has the database's time.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const client = await issue("judy@example.com");
  const changed = withOtherSignature(derOf(client.certificate));
  const authority = await (await server.fetch("/access/x509/client/ca.pem")).text();
  const file = certificates.at("authorities.pem");
  writeFileSync(file, authority);
  const organisation = await OrganisationAuthorities.open(file);
  const context = { ...server, log: createLog("fatal"), organisation } as CertificateContext;
  await expect(identifyCertificate(context, [changed])).rejects.toMatchObject({ reason: "revoked" });
});

test("an expired one is refused", async () => {
  const client = await issue("erin@example.com");
  server.clock.advance(25 * 3600);
  expect((await ask(client)).status).toBe(401);
  expect(lastReason()).toMatchObject({ reason: "expired" });
});

/** A stream, which needs an incident that its user may read. */
async function follow(client: Issued, headers: Record<string, string> = {}) {
  const response = await ask(client, "/incidents/stream", { headers });
  expect(response.status).toBe(200);
  const ended = response.text();
  return { ended: async () => await within("the end of the stream", ended) };
}

/** An access token that was collected with this certificate. */
async function boundTo(client: Issued, user: string): Promise<{ authorization: string }> {
  server.issuer.user = user;
  const challenge = await newChallenge(server, { user });
  await decide(challenge, "approve");
  const { body } = await poll({ fetch: (path, init = {}) => ask(client, path, init) }, challenge);
  return { authorization: `Bearer ${body.encoded_jwt}` };
}

const revokedTokens = async (user: string) =>
  (await server.db.select().from(tokenTable).where(eq(tokenTable.userName, user)))
    .filter(({ revokedAt }) => revokedAt !== null)
    .map(({ certificateSha256 }) => certificateSha256);

describe("a token that is bound to it ends with it, and so do the streams of both,", () => {
  test.each([
    [
      "when it is revoked",
      (client: Issued, serial: string) => ask(client, `/certificates/${serial}`, { method: "DELETE" }),
    ],
    ["when its user signs out", (client: Issued) => ask(client, "/tokens/current", { method: "DELETE" })],
  ])("%s", async (_, end) => {
    const user = `grace${made}@example.com`;
    const client = await issue(user);
    const bound = await boundTo(client, user);
    const streams = [await follow(client), await follow(client, bound)];
    expect(await revokedTokens(user)).toEqual([]);
    expect((await end(client, client.serial)).status).toBe(204);
    expect((await revokedTokens(user)).sort()).toEqual([thumbprintOf(client.certificate), null].sort());
    for (const stream of streams) await stream.ended();
  });
});

test("a stream does not outlive the certificate that its token is bound to", async () => {
  const client = await issue("heidi@example.com");
  server.clock.advance(24 * 3600 - 60);
  const stream = await follow(client, await boundTo(client, "heidi@example.com"));
  server.clock.advance(61);
  await stream.ended();
});

test("a stream shows Restricted incidents no longer than the groups of its user's latest sign-in allow", async () => {
  const client = await issue("ivan@example.com", ["admin"]);
  const { incidentId } = await insertIncident(server.db, server.clock.now());
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId));
  const response = await ask(client, `/incidents/${incidentId}/stream`);
  expect(response.status).toBe(200);
  server.clock.advance(1);
  await personOf(server, "ivan@example.com");
  await within("the end of the stream", response.text());
  expect((await ask(client, `/incidents/${incidentId}`)).status).toBe(404);
});

test("it ends when the key of its authority is revoked", async () => {
  const client = await issue("frank@example.com");
  expect((await ask(client)).status).toBe(200);
  const stream = await follow(client);
  const context = { ...server, log: createLog("fatal") } as Context;
  await rotateAuthority(context, signedIn("root", { admin: true }), {
    kind: "x509",
    name: "client",
    revoke: true,
  });
  expect((await ask(client)).status).toBe(401);
  expect(lastReason()).toMatchObject({ reason: "revoked" });
  await stream.ended();
  const person = await personOf(server, "frank@example.com");
  const { body } = await person.call("GET", "/certificates/?valid=true");
  expect(body.items).toEqual([]);
});
