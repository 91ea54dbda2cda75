import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { auditLog, authorityKey } from "../../drizzle/schema/index.ts";
import { signSshCertificate } from "../../platform/ssh/certificate.ts";
import { parseSshPublicKey, sshEd25519Blob } from "../../platform/ssh/public_key.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type SshServer, startSshServer } from "../../tests/support/domain/sshd.ts";
import { createUsualRole, usualRole } from "../../tests/support/domain/usual_role.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

let server: TestServer;
let sshd: SshServer;
let admin: Person;
let alice: Person;
/** A client key: the path of the private key and the public line. */
let key: { path: string; line: string };
/** A second authority that the host trusts, for certificates that svc would not sign. */
const own = generateKeyPairSync("ed25519");
const ownBlob = sshEd25519Blob(own.publicKey);
const ownLine = `ssh-ed25519 ${ownBlob.toString("base64")}`;

beforeAll(async () => {
  [server, sshd] = await Promise.all([
    startTestServer({ pluginCredential: "ssh-ca" }),
    startSshServer(["deploy"]),
  ]);
  admin = await personOf(server, "root@example.com", ["admin"]);
  alice = await personOf(server, "alice@example.com", ["oncall"]);
  key = await newKey();
});
afterAll(async () => {
  await sshd[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

let made = 0;
async function newKey() {
  const path = join(sshd.directory, `key-${++made}`);
  Bun.spawnSync(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path]);
  return { path, line: (await Bun.file(`${path}.pub`).text()).trim() };
}

const makeRole = (settings: object = {}) =>
  createUsualRole(admin, { plugin: "ssh-ca", settings: { principals: "deploy", ...settings } });

async function issue(role: string, more: object = {}) {
  const { http, body } = await alice.call("POST", "/access/leases/", { role, public_key: key.line, ...more });
  expect([http, body.detail]).toEqual([201, undefined]);
  return body;
}

/** Copies the files of an authority to the host. */
async function fetchTrust(authority = "default"): Promise<void> {
  const response = await server.fetch(`/access/ssh/${authority}/ca.pub`);
  expect(response.status).toBe(200);
  await sshd.trust(`${await response.text()}${ownLine}\n`);
  await sshd.revoke(await krl(authority));
}

async function krl(authority = "default"): Promise<Uint8Array> {
  const response = await server.fetch(`/access/ssh/${authority}/krl`);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/octet-stream"]);
  return new Uint8Array(await response.arrayBuffer());
}

/** Runs `command` on the host. Returns its output, or "refused" with the host's log. */
async function login(certificate: string, command: string, ...options: string[]): Promise<string> {
  const path = join(sshd.directory, `cert-${++made}.pub`);
  await writeFile(path, `${certificate}\n`);
  sshd.forget();
  const { account, port } = sshd;
  const identity = ["-o", "IdentitiesOnly=yes", "-i", key.path, "-o", `CertificateFile=${path}`];
  const child = Bun.spawn(
    ["ssh", ...sshd.options, ...identity, ...options, "-p", String(port), `${account}@127.0.0.1`, command],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe", env: { ...process.env, SSH_AUTH_SOCK: "" } },
  );
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 255) return output.trim();
  return `refused: ${errors}${await sshd.said()}`;
}

test("a user name with $ is not a pattern, and does not become another user's principal", async () => {
  const role = await makeRole({ principals: "{user}" });
  for (const user of ["al$'ice@example.com", "al$$ice@example.com", "$&@example.com", "$`@example.com"]) {
    const person = await personOf(server, user, ["oncall"]);
    const { body } = await person.call("POST", "/access/leases/", { role, public_key: key.line });
    expect(body.credential.fields.principals).toBe(user);
  }
});

test("a certificate logs in with a terminal, and has the requested principals and validity", async () => {
  const ids = await insertIncident(server.db, server.clock.now());
  const [incident] = await server.db.execute<{ name: string }>(
    sql`select name from incident where id = ${ids.incidentId}`,
  );
  const role = await makeRole({ principals: "deploy, {user}", host: "web.example.com", user: "deploy" });
  const lease = await issue(role, { incident: incident!.name });
  const { kind, fields } = lease.credential;
  expect(kind).toBe("ssh");
  expect(fields).toEqual({
    certificate: expect.stringMatching(/^ssh-ed25519-cert-v01@openssh.com [A-Za-z0-9+/=]+$/),
    principals: "deploy,alice@example.com",
    host: "web.example.com",
    user: "deploy",
  });
  await fetchTrust();
  expect(await login(fields.certificate, "tty", "-tt")).toStartWith("/dev/pts/");
  const path = join(sshd.directory, "shown-cert.pub");
  await writeFile(path, fields.certificate);
  const shown = Bun.spawnSync(["ssh-keygen", "-L", "-f", path], { env: { ...process.env, TZ: "UTC" } });
  const text = shown.stdout.toString();
  expect(text).toContain(`Key ID: "alice@example.com ${role} lease/${lease.id} ${incident!.name}"`);
  expect(text).toContain(`Serial: ${lease.id}\n`);
  expect(text).toContain(`to ${lease.expires_at.slice(0, 19)}\n`);
  const [, from] = / from (\S+) to/.exec(text)!;
  const lasts = (Date.parse(lease.expires_at) - Date.parse(`${from}Z`)) / 1000;
  expect(lasts).toBeGreaterThanOrEqual(3600 + 59);
  expect(lasts).toBeLessThanOrEqual(3600 + 62);
});

test("the settings of a role limit what a certificate allows", async () => {
  const plain = await issue(await makeRole({ extensions: "" }));
  await fetchTrust();
  expect(await login(plain.credential.fields.certificate, "tty", "-tt")).toContain(
    "PTY allocation request failed",
  );
  const forced = await issue(await makeRole({ forceCommand: "echo this and no other" }));
  expect(await login(forced.credential.fields.certificate, "id")).toBe("this and no other");
  const elsewhere = await issue(await makeRole({ sourceAddress: "192.0.2.0/24, 2001:db8::/32" }));
  expect(await login(elsewhere.credential.fields.certificate, "id")).toContain(
    "not from a permitted source address",
  );
  const here = await issue(await makeRole({ sourceAddress: "127.0.0.0/8" }));
  expect(await login(here.credential.fields.certificate, "echo here")).toBe("here");
});

describe("a host refuses a certificate", () => {
  const by = (more: object, signer = { privateKey: own.privateKey, blob: ownBlob }) =>
    signSshCertificate(
      {
        key: parseSshPublicKey(key.line),
        serial: 1,
        keyId: "test",
        principals: ["deploy"],
        criticalOptions: {},
        extensions: [],
        validAfter: new Date(Date.now() - 60_000),
        validBefore: new Date(Date.now() + 60_000),
        ...more,
      },
      signer,
    );
  beforeAll(async () => {
    await issue(await makeRole());
    await fetchTrust();
    expect(await login(by({}), "echo taken")).toBe("taken");
  });
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000);

  test("for another principal", async () => {
    const { credential } = await issue(await makeRole({ principals: "somebody" }));
    expect(await login(credential.fields.certificate, "id")).toContain("Permission denied");
    expect(await login(by({ principals: ["{user}", "deploy2"] }), "id")).toContain("does not contain");
  });

  test("that has expired", async () => {
    expect(await login(by({ validBefore: at(-5) }), "id")).toContain("Certificate invalid: expired");
  });

  test("that is not valid yet", async () => {
    expect(await login(by({ validAfter: at(30) }), "id")).toContain("not yet valid");
  });

  test("by another authority", async () => {
    const other = generateKeyPairSync("ed25519");
    const signer = { privateKey: other.privateKey, blob: sshEd25519Blob(other.publicKey) };
    expect(await login(by({}, signer), "id")).toContain("CA ED25519");
    const { credential } = await issue(await makeRole({ authority: "others" }));
    expect(await login(credential.fields.certificate, "id")).toContain("Permission denied");
  });

  test("with any byte changed", async () => {
    const [type, base64] = by({}).split(" ");
    const bytes = Buffer.from(base64!, "base64");
    // Changes bytes from the nonce to the signature. The bytes before them are the type.
    for (let place = 40; place < bytes.length; place += 37) {
      const changed = Buffer.from(bytes);
      changed[place]! ^= 1;
      const said = await login(`${type} ${changed.toString("base64")}`, "echo taken");
      expect([place, said]).toEqual([place, expect.stringContaining("refused")]);
    }
  });

  test("that is revoked, once the host has fetched the list, but no others", async () => {
    const role = await makeRole();
    const [revoked, kept] = [await issue(role), await issue(role)];
    const of = ({ credential }: typeof revoked) => login(credential.fields.certificate, "echo taken");
    expect([await of(revoked), await of(kept)]).toEqual(["taken", "taken"]);
    expect((await alice.call("DELETE", `/access/leases/${revoked.id}`)).http).toBe(200);
    expect(await of(revoked)).toBe("taken");
    // The server caches answers for two seconds.
    await until("the list to contain the certificate", async () => {
      await fetchTrust();
      return (await of(revoked)) !== "taken";
    });
    expect(await of(revoked)).toContain("revoked");
    expect(await of(kept)).toBe("taken");
    const path = join(sshd.directory, "asked.krl");
    await writeFile(path, await krl());
    const listed = Bun.spawnSync(["ssh-keygen", "-Q", "-l", "-f", path]).stdout.toString();
    expect(listed).toContain(`serial: ${revoked.id}\n`);
    expect(listed).not.toContain(`serial: ${kept.id}\n`);
  });
});

describe("the script of docs/credentials-ssh.md", () => {
  const page = readFileSync(join(import.meta.dir, "../../docs/credentials-ssh.md"), "utf8");
  const [, script] = /```sh\n(#!\/bin\/sh\n.*?)```/s.exec(page)!;
  const run = (base: string) => {
    const directory = join(sshd.directory, "etc");
    const text = script!
      .replace(/^base=.*$/m, `base=${base}`)
      .replace(/^directory=.*$/m, `directory=${directory}`);
    expect(text).not.toContain("example.com");
    const child = Bun.spawn(["sh", "-c", text], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    return { directory, exited: child.exited };
  };

  test("fetches the files that sshd reads", async () => {
    const lease = await issue(await makeRole());
    const { directory, exited } = run(`${server.url}/access/ssh/default`);
    expect(await exited).toBe(0);
    expect(readdirSync(directory).sort()).toEqual(["ca.pub", "krl"]);
    await sshd.trust(await Bun.file(join(directory, "ca.pub")).text());
    await sshd.revoke(await Bun.file(join(directory, "krl")).bytes());
    expect(await login(lease.credential.fields.certificate, "echo taken")).toBe("taken");
  });

  test("keeps the old files if the server is down or returns something else", async () => {
    const { directory, exited } = run(`${server.url}/access/ssh/default`);
    await exited;
    const read = () => Promise.all(["ca.pub", "krl"].map((file) => Bun.file(join(directory, file)).text()));
    const before = await read();
    using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("<p>Sign in</p>") });
    for (const base of [
      `http://127.0.0.1:${other.port}`,
      `${server.url}/access/ssh/nobodys`,
      "http://127.0.0.1:9",
    ])
      expect([base, await run(base).exited]).not.toEqual([base, 0]);
    expect(await read()).toEqual(before);
  });
});

describe("the revocation list", () => {
  test("returns 304 until it changes, and may be cached for five seconds", async () => {
    await issue(await makeRole({ authority: "quiet" }));
    const first = await server.fetch("/access/ssh/quiet/krl");
    const etag = first.headers.get("etag")!;
    expect(first.headers.get("cache-control")).toBe("public, max-age=5");
    server.clock.advance(1);
    const second = await server.fetch("/access/ssh/quiet/krl", { headers: { "if-none-match": etag } });
    expect([second.status, await second.text()]).toEqual([304, ""]);
  });

  test("returns 404 for an authority without a key, like the keys, and creates none", async () => {
    for (const file of ["krl", "ca.pub"]) {
      const response = await server.fetch(`/access/ssh/nobodys/${file}`);
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
        404,
        "not_found",
      ]);
    }
    expect(await server.db.$count(authorityKey, sql`name = 'nobodys'`)).toBe(0);
    expect((await server.fetch("/access/ssh/..%2f/krl")).status).toBe(400);
  });
});

describe("a new key of an authority", () => {
  const rotate = (name: string, more: object = {}) =>
    admin.call("POST", "/access/authority_keys/", { kind: "ssh", name, ...more });
  const trusted = async (name: string) =>
    (await (await server.fetch(`/access/ssh/${name}/ca.pub`)).text()).trim().split("\n");

  test("is trusted a day before it signs, and the previous key until its last certificate expires", async () => {
    const role = await makeRole({ authority: "turning" });
    const before = await issue(role);
    const { http, body: next } = await rotate("turning");
    expect(http).toBe(201);
    const day = 24 * 3600 * 1000;
    expect(Date.parse(next.active_at) - Date.parse(next.created_at)).toBe(day);
    expect(next.public).toEndWith(" svc-turning");
    const { body: all } = await admin.call("GET", "/access/authority_keys/");
    const [first] = all.items.filter(({ name, id }: typeof next) => name === "turning" && id !== next.id);
    expect(await trusted("turning")).toEqual([first.public, next.public]);
    // Leases last at most a week.
    expect(Date.parse(first.expires_at) - Date.parse(next.active_at)).toBeGreaterThan(7 * day);
    const signedBy = ({ credential }: typeof before) =>
      Bun.spawnSync(["ssh-keygen", "-L", "-f", "-"], { stdin: Buffer.from(credential.fields.certificate) })
        .stdout.toString()
        .match(/Signing CA: ED25519 (\S+)/)![1];
    expect(signedBy(await issue(role))).toBe(first.fingerprint);
    expect(await rotate("turning")).toMatchObject({ http: 409, body: { code: "conflict" } });
    await server.db.execute(sql`update authority_key set active_at = now() where id = ${next.id}`);
    const after = await issue(role);
    expect(signedBy(after)).toBe(next.fingerprint);
    await fetchTrust("turning");
    for (const { credential } of [before, after])
      expect(await login(credential.fields.certificate, "echo taken")).toBe("taken");
    await server.db.execute(sql`update authority_key set expires_at = now() where id = ${first.id}`);
    expect(await trusted("turning")).toEqual([next.public]);
  });

  test("with --revoke signs immediately, and revokes the previous keys and their certificates", async () => {
    const role = await makeRole({ authority: "stolen" });
    const before = await issue(role);
    await fetchTrust("stolen");
    expect(await login(before.credential.fields.certificate, "echo taken")).toBe("taken");
    const { body: next } = await rotate("stolen", { revoke: true });
    expect(await trusted("stolen")).toEqual([next.public]);
    const after = await issue(role);
    // The host has fetched the list but not the new keys.
    const keys = await server.db
      .select()
      .from(authorityKey)
      .where(sql`name = 'stolen'`);
    await sshd.trust(keys.map((one) => `${one.public}\n`).join(""));
    await until("the list to contain the key", async () => {
      await sshd.revoke(await krl("stolen"));
      return (await login(before.credential.fields.certificate, "echo taken")) !== "taken";
    });
    expect(await login(before.credential.fields.certificate, "id")).toContain("revoked");
    expect(await login(after.credential.fields.certificate, "echo taken")).toBe("taken");
    const actions = await server.db
      .select()
      .from(auditLog)
      .where(sql`subject = 'ssh/stolen'`);
    expect(actions.map(({ action, actor }) => [action, actor])).toEqual([
      ["authority.created", "system"],
      ["authority.rotated", "root@example.com"],
    ]);
  });
});

describe("no certificate is issued", () => {
  const refusal = async (role: string, more: object) => {
    const { http, body } = await alice.call("POST", "/access/leases/", { role, ...more });
    return [http, body.detail];
  };

  test("without a valid public key", async () => {
    const role = await makeRole();
    expect(await refusal(role, {})).toEqual([400, expect.stringContaining("A public key is required")]);
    const short = Bun.spawnSync([
      "ssh-keygen",
      "-q",
      "-t",
      "rsa",
      "-b",
      "2048",
      "-N",
      "",
      "-f",
      join(sshd.directory, "short"),
    ]);
    expect(short.exitCode).toBe(0);
    const line = await Bun.file(join(sshd.directory, "short.pub")).text();
    expect(await refusal(role, { public_key: line })).toEqual([
      400,
      expect.stringContaining("at least 3072 bits"),
    ]);
  });
});

test.each([
  ["sourceAddress", "192.0.2.0/33"],
  ["sourceAddress", "nowhere"],
  ["sourceAddress", "192.0.2.1/24"],
  ["sourceAddress", "2001:db8::1/32"],
  ["sourceAddress", "192.0.2.0/24,"],
  ["sourceAddress", ""],
  ["extensions", "permit-everything"],
  ["extensions", "permit-pty,permit-PTY"],
  ["extensions", "permit-pty permit-user-rc"],
])("a role is refused with %s %j, also when it changes", async (field, value) => {
  const slug = await makeRole({ extensions: "", sourceAddress: "192.0.2.0/24, 2001:db8::/32,198.51.100.7" });
  const settings = { principals: "deploy", [field]: value };
  const changed = { ...usualRole, slug, description: "", plugin: "ssh-ca", settings };
  const answers = await Promise.all([
    admin.call("POST", "/access/roles/", { ...changed, slug: "bad" }),
    admin.call("PUT", `/access/roles/${slug}`, { ...changed, version: 1 }),
  ]);
  const refused = [400, `settings.${field}`];
  expect(answers.map(({ http, body }) => [http, body.field])).toEqual([refused, refused]);
});
