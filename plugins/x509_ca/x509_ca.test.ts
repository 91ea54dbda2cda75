import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { sql } from "drizzle-orm";
import { freePort } from "../../platform/free_port.ts";
import { spawnSvc } from "../../tests/support/cli/process.ts";
import { startClientCertificateServer } from "../../tests/support/domain/client_certificate_server.ts";
import { createUsualRole } from "../../tests/support/domain/usual_role.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startProxy } from "../../tests/support/http/proxies.ts";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { makeServerCertificate } from "../../tests/support/process/openssl.ts";
import { blocksOf } from "../../tests/support/process/page.ts";
import { until } from "../../tests/support/process/until.ts";

let server: TestServer;
let admin: Person;
let alice: Person;
let home: string;
let env: Record<string, string>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "svc-home-"));
  server = await startTestServer({ pluginCredential: "x509-ca" });
  // The CLI uses the real time.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  admin = await personOf(server, "root@example.com", ["admin"]);
  alice = await personOf(server, "alice@example.com", ["oncall"]);
  env = { SVC_SERVER: server.url, SVC_TOKEN: await signInToken(server), HOME: home };
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

const makeRole = (settings: object = {}) =>
  createUsualRole(admin, { plugin: "x509-ca", settings, groups: ["*"] });

const newKey = () =>
  generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });

async function issue(role: string, who = alice) {
  const { privateKey, publicKey } = newKey();
  const { http, body } = await who.call("POST", "/access/leases/", { role, public_key: publicKey });
  expect([http, body.detail]).toEqual([201, undefined]);
  return { ...body, privateKey };
}

async function text(path: string): Promise<string> {
  const response = await server.fetch(path);
  expect([path, response.status]).toEqual([path, 200]);
  return response.text();
}

interface Lease {
  credential: { fields: Record<string, string> };
  privateKey: string;
}

let connections = 0;
/** Connects to a TLS server with this certificate, and returns the answer. */
async function connect(
  { credential, privateKey }: Lease,
  trusted: { ca: string; crl?: string },
): Promise<string> {
  await using tls = await startClientCertificateServer(trusted);
  return await ask(tls.url, tls.authorityFile, { credential, privateKey });
}

/** Requests a page with this certificate, and returns the answer. */
async function ask(
  url: string,
  authorityFile: string,
  { credential, privateKey }: Lease,
  ...more: string[]
): Promise<string> {
  const [cert, key] = [join(home, `cert-${++connections}`), join(home, `key-${connections}`)];
  await writeFile(cert, credential.fields.certificate!);
  await writeFile(key, privateKey);
  const options = ["--silent", "--show-error", "--cacert", authorityFile, "--cert", cert, "--key", key];
  const child = Bun.spawn(["curl", ...options, ...more, url], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return `${out}${errors}`.trim();
}

test("a TLS server accepts a certificate until the revocation list contains it", async () => {
  const role = await makeRole({ uri: "spiffe://example.com/user/{user}" });
  const [lease, kept] = [await issue(role), await issue(role)];
  expect(lease.credential.kind).toBe("x509");
  expect(Object.keys(lease.credential.fields).sort()).toEqual(["certificate", "chain"]);
  const ca = await text("/access/x509/default/ca.pem");
  expect(lease.credential.fields.chain).toBe(ca);
  const names =
    "alice@example.com email:alice@example.com, URI:spiffe://example.com/user/alice%40example.com";
  const crl = () => text("/access/x509/default/crl.pem");
  expect(await connect(lease, { ca, crl: await crl() })).toBe(names);
  const certificate = new X509Certificate(lease.credential.fields.certificate);
  expect(new Date(certificate.validTo).getTime()).toBe(
    Math.floor(Date.parse(lease.expires_at) / 1000) * 1000,
  );
  const before = (Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)) / 1000;
  expect(before).toBeGreaterThanOrEqual(3659);
  expect(before).toBeLessThanOrEqual(3662);
  expect((await alice.call("DELETE", `/access/leases/${lease.id}`)).http).toBe(200);
  const path = join(home, "listed.crl");
  await until("the list to contain it", async () => {
    await writeFile(path, await crl());
    const { stdout } = Bun.spawnSync(["openssl", "crl", "-noout", "-text", "-in", path]);
    return stdout.toString().includes(certificate.serialNumber);
  });
  expect(await connect(lease, { ca, crl: await crl() })).toBe("refused: CERT_REVOKED");
  expect(await connect(kept, { ca, crl: await crl() })).toBe(names);
});

test("a certificate contains the address of its revocation list", async () => {
  const lease = await issue(await makeRole());
  const path = join(home, "lease.pem");
  await writeFile(path, lease.credential.fields.certificate);
  const { stdout } = Bun.spawnSync([
    "openssl",
    "x509",
    "-noout",
    "-ext",
    "crlDistributionPoints",
    "-in",
    path,
  ]);
  const [url] = /http\S+/.exec(stdout.toString())!;
  const response = await fetch(url!);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/pkix-crl"]);
  const etag = response.headers.get("etag")!;
  const der = join(home, "list.der");
  await writeFile(der, new Uint8Array(await response.arrayBuffer()));
  const shown = Bun.spawnSync([
    "openssl",
    "crl",
    "-inform",
    "DER",
    "-noout",
    "-lastupdate",
    "-nextupdate",
    "-in",
    der,
  ]);
  const [last, next] = [...shown.stdout.toString().matchAll(/=(.*)/g)].map(([, at]) => Date.parse(at!));
  expect(Math.round((next! - last!) / 60_000)).toBe(48 * 60 + 5);
  expect((await fetch(url!, { headers: { "if-none-match": etag } })).status).toBe(304);
});

test("a new key is trusted before it signs, and --revoke ends the trust in previous keys", async () => {
  const role = await makeRole({ authority: "turning" });
  const first = await issue(role);
  const rotate = async (more: object = {}) => {
    const { http, body } = await admin.call("POST", "/access/authority_keys/", {
      kind: "x509",
      name: "turning",
      ...more,
    });
    expect(http).toBe(201);
    return body;
  };
  const next = await rotate();
  expect(next.fingerprint).toBe(new X509Certificate(next.public).fingerprint256);
  const ca = await text("/access/x509/turning/ca.pem");
  expect(ca).toBe(`${first.credential.fields.chain}${next.public}`);
  expect((await text("/access/x509/turning/crl.pem")).match(/BEGIN X509 CRL/g)).toHaveLength(2);
  await server.db.execute(sql`update authority_key set active_at = now() where id = ${next.id}`);
  const second = await issue(role);
  expect(second.credential.fields.chain).toBe(next.public);
  const trusted = { ca, crl: await text("/access/x509/turning/crl.pem") };
  for (const lease of [first, second]) expect(await connect(lease, trusted)).toContain("alice@example.com");
  const last = await rotate({ revoke: true });
  expect(await text("/access/x509/turning/ca.pem")).toBe(last.public);
  expect(await connect(second, { ca: last.public })).toMatch(/^refused: (UNABLE_TO|SELF_SIGNED)/);
});

test("the script of docs/credentials-x509.md fetches the files that a server reads", async () => {
  const lease = await issue(await makeRole());
  const page = await Bun.file(join(import.meta.dir, "../../docs/credentials-x509.md")).text();
  const [, script] = /```sh\n(#!\/bin\/sh\n.*?)```/s.exec(page)!;
  const directory = join(home, "etc");
  const run = (base: string) => {
    const text = script!
      .replace(/^base=.*$/m, `base=${base}`)
      .replace(/^directory=.*$/m, `directory=${directory}`);
    return Bun.spawn(["sh", "-c", text], { stdin: "ignore", stdout: "ignore", stderr: "ignore" }).exited;
  };
  expect(await run(`${server.url}/access/x509/default`)).toBe(0);
  expect(readdirSync(directory).sort()).toEqual(["ca.pem", "crl.pem"]);
  const read = (name: string) => Bun.file(join(directory, name)).text();
  const trusted = { ca: await read("ca.pem"), crl: await read("crl.pem") };
  expect(await connect(lease, trusted)).toContain("alice@example.com");
  using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("<p>Sign in</p>") });
  for (const base of [`http://127.0.0.1:${other.port}`, `${server.url}/access/x509/nobodys`])
    expect([base, await run(base)]).not.toEqual([base, 0]);
  expect({ ca: await read("ca.pem"), crl: await read("crl.pem") }).toEqual(trusted);
});

test("nginx with the configuration of docs/credentials-x509.md passes the user's address on", async () => {
  const { key, cert } = makeServerCertificate(home);
  const [block] = blocksOf("docs/credentials-x509.md").filter(({ language }) => language === "nginx");
  using website = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ headers }) => new Response(headers.get("x-client-email") ?? "no address"),
  });
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const configuration = block!.lines
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replace("127.0.0.1:3000", `127.0.0.1:${website.port}`)
    .replace("/etc/ssl/wiki.pem", cert)
    .replace("/etc/ssl/wiki.key", key)
    .replaceAll("/etc/ssl/svc/", `${home}/`);
  const start = async () => {
    for (const file of ["ca.pem", "crl.pem"])
      await writeFile(join(home, file), await text(`/access/x509/default/${file}`));
    const tls = { rejectUnauthorized: false };
    return startProxy("nginx", join(home, "nginx"), configuration, () =>
      fetch(url, { tls }).catch(() => undefined),
    );
  };
  const role = await makeRole();
  const forged = ["--header", "X-Client-Email: root@example.com"];
  const lease = await issue(role);
  {
    await using _nginx = await start();
    const long = (length: number) => "@example.com".padStart(length, "b");
    for (const [address, received] of [
      ["alice@example.com", "alice@example.com"],
      ["bob+web@example.com", "bob\\+web@example.com"],
      ["andré@example.com", "andr\\C3\\A9@example.com"],
      [long(63), long(63)],
      [long(64), "no address"],
      [long(65), "no address"],
    ] as const) {
      const lease = await issue(role, await personOf(server, address));
      expect([address, await ask(url, cert, lease, ...forged)]).toEqual([address, received]);
    }
    const response = await fetch(url, {
      tls: { rejectUnauthorized: false },
      headers: { "x-client-email": "root@example.com" },
    });
    expect(await response.text()).toContain("No required SSL certificate was sent");
  }
  expect((await alice.call("DELETE", `/access/leases/${lease.id}`)).http).toBe(200);
  await until("the list to contain it", async () => {
    await using _nginx = await start();
    return (await ask(url, cert, lease)).includes("The SSL certificate error");
  });
});

describe("no certificate is issued", () => {
  test("for an e-mail address outside the authority's domain", async () => {
    const role = await makeRole({ authority: "ours" });
    await issue(role);
    // This server has a different SVC_DOMAIN from the one that created the authority.
    await using other = await server.another({ domain: "example.org" });
    const carol = await personOf(server, "carol@example.com");
    const stranger = await personOf(other, "carol@example.org");
    expect((await issue(role, carol)).state).toBe("Active");
    const { publicKey } = newKey();
    const { http, body } = await stranger.call("POST", "/access/leases/", { role, public_key: publicKey });
    expect([http, body.detail]).toEqual([503, expect.stringContaining("only for addresses of SVC_DOMAIN")]);
  });

  test("without a P-256 key", async () => {
    const role = await makeRole();
    const { body } = await alice.call("POST", "/access/leases/", { role });
    expect(body.detail).toContain("A public key is required");
    const { publicKey } = generateKeyPairSync("ed25519", {
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    const refused = await alice.call("POST", "/access/leases/", { role, public_key: publicKey });
    expect(refused.body.detail).toContain("it must be a P-256 key");
  });
});

test("svc access check reports a URI that servers would refuse", async () => {
  const role = await makeRole({ uri: "spiffe://example.org/{user}" });
  const { body } = await admin.call("GET", `/access/roles/${role}/check`);
  expect(body.problems).toEqual([{ problem: "The authority default can sign only for URIs of SVC_DOMAIN" }]);
});

test("svc access check reports an authority that expires soon", async () => {
  const role = await makeRole();
  const check = async () => (await admin.call("GET", `/access/roles/${role}/check`)).body.problems;
  expect(await check()).toEqual([]);
  server.clock.advance(9.8 * 365 * 24 * 3600);
  try {
    const later = await personOf(server, "root@example.com", ["admin"]);
    const { body } = await later.call("GET", `/access/roles/${role}/check`);
    expect(body.problems).toEqual([
      {
        problem: expect.stringMatching(/^The authority default expires on \d{4}-\d\d-\d\d$/),
        fix: "svc access authority rotate x509 default",
      },
    ]);
  } finally {
    server.clock.advance(-9.8 * 365 * 24 * 3600);
  }
});

test("svc access run and get write the key and the certificate to private files", async () => {
  const role = await makeRole();
  const lease = await issue(role);
  await using tls = await startClientCertificateServer({ ca: lease.credential.fields.chain });
  const curl = (cert: string, key: string) =>
    `curl --silent --show-error --cacert ${tls.authorityFile} --cert ${cert} --key ${key} ${tls.url}`;
  const inside = `${curl('"$SVC_ACCESS_CERTIFICATE"', '"$SVC_ACCESS_KEY"')}; echo; echo "$SVC_ACCESS_KEY"; stat -c %a "$SVC_ACCESS_KEY" "$(dirname "$SVC_ACCESS_KEY")"`;
  const ran = await spawnSvc(["access", "run", role, "--", "sh", "-c", inside], env).finished;
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  const [names, key, ...modes] = ran.stdout.trim().split("\n");
  expect([names, ...modes]).toEqual(["alice@example.com email:alice@example.com", "600", "700"]);
  expect(() => statSync(dirname(key!))).toThrow("ENOENT");
  const got = await spawnSvc(["access", "get", role, "--format", "x509"], env).finished;
  expect(got).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^curl --cert (\S+) --key (\S+) https:\/\/HOST\n$/),
  });
  const [, cert, file] = /--cert (\S+) --key (\S+)/.exec(got.stdout)!;
  expect(readdirSync(dirname(cert!)).sort()).toEqual(["certificate.pem", "key.pem"]);
  for (const path of [cert!, file!]) expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
  const asked = Bun.spawn(["sh", "-c", curl(cert!, file!)], { stdout: "pipe" });
  expect(await new Response(asked.stdout).text()).toContain("alice@example.com");
});
