import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { rotateAuthority } from "../../core/authority/authority.ts";
import type { Context } from "../../core/context.ts";
import { createLog } from "../../platform/log.ts";
import {
  type CertificateFolder,
  type Issued,
  thumbprintOf,
  tlsWith,
} from "../../tests/support/http/client_certificates.ts";
import { type MtlsServer, startMtlsServer } from "../../tests/support/http/mtls.ts";
import { personOf } from "../../tests/support/http/people.ts";
import type { TestServer } from "../../tests/support/http/server.ts";

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

test("an expired one is refused", async () => {
  const client = await issue("erin@example.com");
  server.clock.advance(25 * 3600);
  expect((await ask(client)).status).toBe(401);
  expect(lastReason()).toMatchObject({ reason: "expired" });
});

test("it ends when the key of its authority is revoked", async () => {
  const client = await issue("frank@example.com");
  expect((await ask(client)).status).toBe(200);
  const context = { ...server, log: createLog("fatal") } as Context;
  const admin = { kind: "user", user: "root@example.com", groups: [], admin: true, tokenId: "" } as const;
  const at = server.clock.now();
  await rotateAuthority(
    context,
    { ...admin, groups: [], expiresAt: at },
    { kind: "x509", name: "client", revoke: true },
  );
  expect((await ask(client)).status).toBe(401);
  expect(lastReason()).toMatchObject({ reason: "revoked" });
});
