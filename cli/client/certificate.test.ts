import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { populate } from "../../core/populate/populate.ts";
import {
  approvingBrowser,
  type Certifying,
  serialIn,
  useCertificates,
  whoami,
} from "../../tests/support/cli/certificates.ts";
import type { CliUser } from "../../tests/support/cli/incident_cli.ts";
import { startTestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";
import { readCredentials } from "./credentials_file.ts";
import { credentialsPath } from "./private_file.ts";

// `svc login --certificate` and what uses the certificate, against a real server with a port for client certificates.

let { mtls, server, ca } = {} as Certifying;
const { asked, somebody, login, certified } = useCertificates((given) => {
  ({ mtls, server, ca } = given);
});

test("a certificate authenticates every command, also without a token, and other programs", async () => {
  const user = await certified();
  expect(statSync(user.files.key).mode & 0o777).toBe(0o600);
  user.env.SVC_TOKEN = "not.a.token";
  expect(await whoami(user)).toBe("alice@example.com");
  expect(asked.at(-1)).toBe(`GET ${mtls.url}/whoami`);
  for (const words of [
    ["incident", "list"],
    ["access", "list"],
    ["certificates", "list"],
  ])
    expect([words, (await user.svc(...words, "--certificate")).code]).toEqual([words, 0]);
  expect(asked.filter((one) => one.startsWith(`GET ${server.url}`) && !one.includes("/noauth/"))).toEqual([]);
  const curl = Bun.spawn([
    "curl",
    "-sS",
    "--cacert",
    mtls.authorityFile,
    "--cert",
    user.files.certificate,
    "--key",
    user.files.key,
    `${mtls.url}/whoami`,
  ]);
  expect(await new Response(curl.stdout).json()).toMatchObject({
    user: "alice@example.com",
    groups: ["oncall"],
  });
});

test("signing in again reuses a valid certificate; --force replaces and revokes it, with the same key", async () => {
  const user = await certified();
  const [key, serial] = [readFileSync(user.files.key, "utf8"), serialIn(user.files.certificate)];
  expect(JSON.parse((await login(user)).stdout)).toMatchObject({ reused: true });
  expect(serialIn(user.files.certificate)).toBe(serial);
  const link = `${user.files.certificate}.link`;
  linkSync(user.files.certificate, link);
  expect(JSON.parse((await login(user, "--force")).stdout)).toMatchObject({ reused: false });
  expect(serialIn(user.files.certificate)).not.toBe(serial);
  expect(serialIn(link)).toBe(serialIn(user.files.certificate));
  expect(readFileSync(user.files.key, "utf8")).toBe(key);
  const valid = (await user.svc("certificates", "list", "--json")).stdout;
  expect(valid).toContain(serialIn(user.files.certificate));
  expect(valid).not.toContain(serial);
});

test("a command renews it after two thirds of its lifetime, in place, once, until the sign-in ends", async () => {
  const user = await certified();
  const { certificate: file } = user.files;
  linkSync(file, `${file}.link`);
  const [serial, key] = [serialIn(file), readFileSync(user.files.key, "utf8")];
  server.clock.advance(15 * 3600);
  await whoami(user);
  expect(serialIn(file)).toBe(serial);
  server.clock.advance(4 * 3600);
  asked.length = 0;
  const alice = "alice@example.com";
  expect(await Promise.all([whoami(user), whoami(user), whoami(user)])).toEqual([alice, alice, alice]);
  expect(asked.filter((one) => one.startsWith("POST"))).toEqual([`POST ${mtls.url}/certificates/`]);
  expect(serialIn(file)).not.toBe(serial);
  expect([serialIn(`${file}.link`), readFileSync(user.files.key, "utf8")]).toEqual([serialIn(file), key]);
  // Six more days, and a bit of the last one.
  for (let hours = 19; hours < 7 * 24 - 18; hours += 18) {
    server.clock.advance(18 * 3600);
    expect([hours, await whoami(user)]).toEqual([hours, "alice@example.com"]);
  }
  server.clock.advance(30 * 3600);
  expect(await whoami(user)).toEqual([
    4,
    expect.stringMatching(
      /expired at \S+Z, and the clock of this machine says \S+Z; run svc login --certificate/,
    ),
  ]);
});

test("a renewal that fails does not fail the command, and is tried again later", async () => {
  const user = await certified();
  server.clock.advance(19 * 3600);
  let posts = 0;
  const offline = user.with({
    fetch: (url, init) => {
      if (init.method !== "POST") return fetch(url, { ...init, tls: { ...init.tls, ca } });
      posts += 1;
      return Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
    },
  });
  for (let time = 0; time < 3; time += 1) expect(await whoami(offline)).toBe("alice@example.com");
  expect(posts).toBe(1);
  server.clock.advance(290);
  await whoami(offline);
  expect(posts).toBe(1);
  server.clock.advance(20);
  const { stderr } = await offline.svc("--certificate", "whoami");
  expect([posts, stderr]).toEqual([2, ""]);
  // Four hours before its end, and a sixth of its lifetime.
  server.clock.advance(2 * 3600);
  expect((await offline.svc("--certificate", "whoami")).stderr).toMatch(
    /^svc: warning: the client certificate ends at \S+Z and could not be renewed \(.+\)\n$/,
  );
  const serial = serialIn(user.files.certificate);
  server.clock.advance(301);
  expect(await whoami(user)).toBe("alice@example.com");
  expect(serialIn(user.files.certificate)).not.toBe(serial);
});

test.each([-10, 30])(
  "it is renewed by the server's clock if that of this machine is wrong by %i hours",
  async (hours) => {
    const user = await certified();
    const { certificate: file } = user.files;
    const serial = serialIn(file);
    const now = () => new Date(server.clock.now().getTime() + hours * 3_600_000);
    const wrong = user.with({ clock: { now } });
    expect(await whoami(wrong)).toBe("alice@example.com");
    expect((await wrong.svc("--certificate", "incident", "list")).code).toBe(0);
    server.clock.advance(15 * 3600);
    expect(await whoami(wrong)).toBe("alice@example.com");
    expect(serialIn(file)).toBe(serial);
    server.clock.advance(4 * 3600);
    expect((await wrong.svc("--certificate", "incident", "list")).code).toBe(0);
    expect(serialIn(file)).not.toBe(serial);
  },
);

test("a server that does not answer a renewal delays a command for a few seconds at most", async () => {
  const user = await certified();
  server.clock.advance(19 * 3600);
  let timeout: number | undefined;
  const slow = user.with({
    fetch: (url, init) => {
      if (init.method !== "POST") return fetch(url, { ...init, tls: { ...init.tls, ca } });
      const began = performance.now();
      return new Promise((_, reject) => {
        init.signal?.addEventListener("abort", () => {
          timeout ??= performance.now() - began;
          reject(init.signal?.reason);
        });
      });
    },
  });
  expect(await whoami(slow)).toBe("alice@example.com");
  expect(timeout).toBeLessThan(8000);
});

test("a command that runs for days renews it", async () => {
  const user = await certified();
  const { certificate: file } = user.files;
  const serial = serialIn(file);
  await populate(server.db, server.clock);
  const reported = await user.svc(
    "--certificate",
    "incident",
    "report",
    "Checkout is down",
    "-p",
    "High",
    "-q",
  );
  expect(reported).toMatchObject({ code: 0, stdout: expect.stringMatching(/^INC-/) });
  const name = reported.stdout.trim();
  asked.length = 0;
  const watching = user.svc("--certificate", "incident", "watch", name, "--until", "closed", "--json");
  await until("the stream", () => asked.some((one) => one.includes("/stream")));
  server.clock.advance(19 * 3600);
  await until("the renewal", () => serialIn(file) !== serial);
  // The first certificate has expired.
  server.clock.advance(6 * 3600);
  expect((await user.svc("--certificate", "incident", "close", name, "-r", "Rolled back")).code).toBe(0);
  expect(await watching).toMatchObject({ code: 0 });
});

test("a renewal does not bring back a certificate that a sign-out deleted meanwhile", async () => {
  const user = await certified();
  server.clock.advance(19 * 3600);
  const slow = user.with({
    fetch: async (url, init) => {
      const answer = await fetch(url, { ...init, tls: { ...init.tls, ca } });
      if (init.method === "POST") expect((await user.svc("logout")).code).toBe(0);
      return answer;
    },
  });
  await whoami(slow);
  expect(existsSync(user.files.certificate)).toBe(false);
  expect(await whoami(user)).toEqual([4, expect.stringContaining("no client certificate of")]);
});

test("signing out revokes and deletes it, by the token where its address cannot be reached", async () => {
  for (const isReachable of [true, false]) {
    const user = await certified();
    const [certificate, key] = [readFileSync(user.files.certificate), readFileSync(user.files.key)];
    const leaving = isReachable
      ? user
      : user.with({
          fetch: (url, init) =>
            url.startsWith(mtls.url)
              ? Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }))
              : fetch(url, init),
        });
    expect(await leaving.svc("logout")).toMatchObject({ code: 0, stderr: "" });
    expect([existsSync(user.files.certificate), existsSync(user.files.key)]).toEqual([false, false]);
    const tls = { cert: certificate, key, ca };
    expect((await fetch(`${mtls.url}/whoami`, { tls, keepalive: false })).status).toBe(401);
    expect(await whoami(user)).toEqual([4, expect.stringContaining("no client certificate of")]);
  }
});

test("signing out says whether it was still valid", async () => {
  const said = async (user: CliUser) => JSON.parse((await user.svc("logout", "--json")).stdout);
  const [valid, expired] = [await certified(), await certified()];
  expect(await said(valid)).toMatchObject([{ revoked: true }]);
  server.clock.advance(30 * 3600);
  expect(await said(expired)).toMatchObject([{ revoked: false }]);
});

test("signing out offline deletes it, and says until when it is valid", async () => {
  const user = await certified();
  const offline = user.with({
    fetch: () => Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" })),
  });
  const { code, stderr } = await offline.svc("logout");
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/deleted here, but the certificate is valid until 2/),
  ]);
  expect(existsSync(user.files.key)).toBe(false);
});

test("signing out revokes the token, too, if the certificate cannot be deleted", async () => {
  const user = await certified();
  const { token } = readCredentials(user.env).servers[server.url]!;
  const authorization = { headers: { authorization: `Bearer ${token}` } };
  expect((await server.fetch("/whoami", authorization)).status).toBe(200);
  const lock = join(dirname(credentialsPath(user.env)), "credentials.lock");
  rmSync(lock);
  mkdirSync(lock);
  expect(await user.svc("logout")).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot lock") });
  expect((await server.fetch("/whoami", authorization)).status).toBe(401);
});

test("another user's sign-in ends the certificate", async () => {
  const user = await certified();
  const tls = { cert: readFileSync(user.files.certificate), key: readFileSync(user.files.key), ca };
  server.issuer.user = "bob@example.com";
  expect((await user.svc("login", "bob@example.com", "--browser")).code).toBe(0);
  expect(await whoami(user)).toEqual([4, expect.stringContaining("no client certificate of")]);
  expect((await fetch(`${mtls.url}/whoami`, { tls, keepalive: false })).status).toBe(401);
});

test("the key can be in the keychain", async () => {
  const secrets = new Map<string, string>();
  const user = (await somebody()).with({
    keychain: {
      get: async (name) => secrets.get(name) ?? null,
      set: async (name, value) => void secrets.set(name, value),
      delete: async (name) => void secrets.delete(name),
    },
    openBrowser: approvingBrowser,
    fetch: (url, init) => fetch(url, init.tls ? { ...init, tls: { ...init.tls, ca } } : init),
    sleep: () => Bun.sleep(20),
  });
  const { stdout } = await login(user, "--keychain");
  const { certificate } = JSON.parse(stdout);
  expect(certificate.key).toBeNull();
  expect(existsSync(join(certificate.certificate, "../key.pem"))).toBe(false);
  expect(await whoami(user)).toBe("alice@example.com");
  expect(readFileSync(credentialsPath(user.env), "utf8")).not.toContain("PRIVATE");
  expect((await user.svc("logout")).code).toBe(0);
  expect([...secrets.keys()]).toEqual([]);
});

test("damaged files are refused with what to do, and replaced by signing in", async () => {
  const user = await certified();
  const other = await certified();
  for (const [damage, fault] of [
    [() => chmodSync(user.files.key, 0o644), "key.pem can be read by others"],
    [() => writeFileSync(user.files.certificate, "x"), "certificate.pem is damaged"],
    [() => writeFileSync(user.files.key, "x"), "certificate.pem is not for the key"],
    [
      () => writeFileSync(user.files.key, readFileSync(other.files.key)),
      "certificate.pem is not for the key",
    ],
  ] as const) {
    damage();
    expect(await whoami(user)).toEqual([1, expect.stringContaining(fault)]);
    expect((await login(user)).code).toBe(0);
    expect(await whoami(user)).toBe("alice@example.com");
  }
});

test("a command that read the certificate before another renewed it does not renew it again", async () => {
  const user = await certified("--keychain");
  server.clock.advance(19 * 3600);
  asked.length = 0;
  const key = await user.keychain.get(`${server.url} (certificate)`);
  // The keychain is read after the certificate: the other command renews it in between.
  const late = user.with({
    fetch: user.fetch,
    keychain: {
      ...user.keychain,
      get: async () => {
        expect(await whoami(user)).toBe("alice@example.com");
        return key;
      },
    },
  });
  expect(await whoami(late)).toBe("alice@example.com");
  expect(asked.filter((one) => one.startsWith("POST"))).toHaveLength(1);
});

test("a certificate whose write was interrupted is completed by the next command", async () => {
  const user = await certified();
  const { certificate: file } = user.files;
  const [text, { ino }] = [readFileSync(file, "utf8"), statSync(file)];
  writeFileSync(`${file}.next`, text);
  // Longer than the certificate, so that the end of it must go.
  writeFileSync(file, `${text.slice(0, 400)}${"A".repeat(2000)}`);
  expect(await whoami(user)).toBe("alice@example.com");
  expect([readFileSync(file, "utf8"), statSync(file).ino]).toEqual([text, ino]);
  expect(existsSync(`${file}.next`)).toBe(false);
  // Not even written completely.
  writeFileSync(`${file}.next`, text.slice(0, 300));
  expect(await whoami(user)).toBe("alice@example.com");
  expect(readFileSync(file, "utf8")).toBe(text);
});

/** The same user when the disk has no space for the new certificate. */
const onFullDisk = (user: Awaited<ReturnType<typeof certified>>) =>
  user.with({
    fetch: async (url, init) => {
      const answer = await user.fetch(url, init);
      if (url === `${server.url}/certificates/`) mkdirSync(`${user.files.certificate}.next`);
      return answer;
    },
    keychain: user.keychain,
    openBrowser: user.openBrowser,
    sleep: () => Bun.sleep(20),
  });

test("a certificate that cannot be stored is revoked", async () => {
  const user = await certified();
  const { certificate: file } = user.files;
  const [text, serial] = [readFileSync(file, "utf8"), serialIn(file)];
  const { code, stderr } = await login(onFullDisk(user), "--force");
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining(`${file}: cannot be written (ERR_FS_EISDIR); the certificate was revoked`),
  ]);
  rmSync(`${file}.next`, { recursive: true });
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(await whoami(user)).toBe("alice@example.com");
  const { items } = JSON.parse((await user.svc("certificates", "list", "--all", "--json")).stdout);
  const valid = items.filter((one: { revoked_at: unknown }) => one.revoked_at === null);
  expect(valid.map((one: { serial: string }) => one.serial)).toContain(serial);
  expect(items[0].revoked_at).not.toBeNull();
});

test("a sign-in whose certificate cannot be stored leaves no certificate next to the key of another", async () => {
  const user = await certified();
  const { files } = user;
  const stays = await login(onFullDisk(user), "--force", "--keychain");
  expect([stays.code, stays.stderr]).toEqual([
    1,
    expect.stringContaining("signed in, but without a certificate"),
  ]);
  rmSync(`${files.certificate}.next`, { recursive: true });
  expect(await whoami(user)).toBe("alice@example.com");
  server.issuer.user = "bob@example.com";
  const ended = await onFullDisk(user).svc("login", "bob@example.com", "--browser", "--certificate");
  expect([ended.code, ended.stderr]).toEqual([
    1,
    expect.stringContaining("signed in, but without a certificate"),
  ]);
  expect(existsSync(files.certificate)).toBe(false);
  expect(await whoami(user)).toEqual([4, expect.stringContaining("no client certificate of")]);
});

test("a server without mutual TLS is recognized before anybody is asked to approve", async () => {
  await using plain = await startTestServer();
  const user = await somebody(plain);
  const { code, stdout, stderr } = await user.svc("login", "alice@example.com", "--browser", "--certificate");
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: "",
    stderr: `svc: ${plain.url} does not accept client certificates (--mtls-port or SVC_MTLS_URL); to sign in without one: svc login\n`,
  });
  expect(existsSync(credentialsPath(user.env))).toBe(false);
  expect((await user.svc("login", "alice@example.com", "--browser")).code).toBe(0);
});

test("an older server without mutual TLS keeps the sign-in, and says so", async () => {
  await using plain = await startTestServer();
  const user = await somebody(plain);
  const older = user.with({
    keychain: user.keychain,
    openBrowser: user.openBrowser,
    sleep: () => Bun.sleep(20),
    fetch: async (url, init) => {
      const answer = await user.fetch(url, init);
      if (!String(url).includes("challenge_generator")) return answer;
      const { client_certificates: _, ...body } = (await answer.json()) as Record<string, unknown>;
      return Response.json(body);
    },
  });
  const { code, stderr } = await login(older);
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining(
      "signed in, but without a certificate: This server does not accept client certificates",
    ),
  ]);
  expect((await user.svc("whoami")).code).toBe(0);
});

test("a command without a server has no --certificate", async () => {
  const user = await somebody();
  expect(await user.svc("--certificate", "plugin", "list")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("unknown option: --certificate"),
  });
});
