import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { approvingBrowser } from "../../tests/support/cli/certificates.ts";
import { type CliUser, cliUser } from "../../tests/support/cli/incident_cli.ts";
import { type MtlsServer, startMtlsServer } from "../../tests/support/http/mtls.ts";
import { Interrupted } from "../errors.ts";
import type { Fetch, Io } from "../io.ts";
import { credentialsPath } from "./private_file.ts";

// `svc login --certificate` that is cut short, or cannot store what it gets.

let mtls: MtlsServer;
let ca: string;
beforeAll(async () => {
  mtls = await startMtlsServer();
  ca = readFileSync(mtls.authorityFile, "utf8");
});
afterAll(() => mtls[Symbol.asyncDispose]());

let made = 0;
async function somebody() {
  made += 1;
  const name = `user-${made}@example.com`;
  const user = await cliUser(mtls.server, name);
  delete user.env.SVC_TOKEN;
  return { name, user };
}

const send: Fetch = (url, init) => fetch(url, init.tls ? { ...init, tls: { ...init.tls, ca } } : init);

/** A machine of that user on which Ctrl-C can be pressed. */
function atMachine(user: CliUser, { fetchAs = send, approves = true } = {}) {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  const controller = new AbortController();
  const press = () => {
    reject(new Interrupted());
    controller.abort(new Interrupted());
  };
  const interruptible: Io["interruptible"] = (work) => Promise.race([work(controller.signal), promise]);
  const openBrowser: Io["openBrowser"] = (challengeUrl) =>
    approves ? approvingBrowser(challengeUrl, {}) : { failed: new Promise(() => {}) };
  const parts = { fetch: fetchAs, interruptible, openBrowser, sleep: () => Bun.sleep(20) };
  return { press, user: user.with(parts) };
}

const login = (user: CliUser, name: string) => user.svc("login", name, "--browser", "--certificate");

/** All files below the folder of the credentials. */
const filesOf = (user: CliUser) => {
  const folder = dirname(credentialsPath(user.env));
  return existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => /pem|next|tmp/.test(path))
    : [];
};
const listed = async (user: CliUser) =>
  JSON.parse((await user.svc("certificates", "list", "--json")).stdout).items as { serial: string }[];

test("Ctrl-C before the approval stores nothing", async () => {
  const { name, user } = await somebody();
  const { press, user: here } = atMachine(user, {
    approves: false,
    fetchAs: (url, init) => {
      if (url.includes("challenge_poller")) setTimeout(() => press(), 10);
      return send(url, init);
    },
  });
  expect((await login(here, name)).code).toBe(130);
  expect(filesOf(user)).toEqual([]);
  expect((await user.svc("whoami")).code).toBe(4);
});

test("Ctrl-C after the request was sent leaves no file, and a certificate that its user can see and revoke", async () => {
  const { name, user } = await somebody();
  const { press, user: here } = atMachine(user, {
    fetchAs: async (url, init) => {
      const answer = await send(url, init);
      if (init.method === "POST" && url.endsWith("/certificates/")) {
        press();
        await new Promise(() => {});
      }
      return answer;
    },
  });
  expect((await login(here, name)).code).toBe(130);
  expect(filesOf(user)).toEqual([]);
  const { user: again } = atMachine(user);
  expect((await again.svc("--certificate", "whoami")).code).toBe(4);
  // The sign-in itself was complete.
  const [orphan, ...others] = await listed(again);
  expect([orphan?.serial, others]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), []]);
  expect((await again.svc("certificates", "revoke", orphan!.serial)).code).toBe(0);
  expect(await listed(again)).toEqual([]);
  expect((await login(again, name)).code).toBe(0);
  expect((await again.svc("--certificate", "whoami")).code).toBe(0);
});

test("a certificate for which no folder can be made is revoked", async () => {
  const { name, user } = await somebody();
  const { user: here } = atMachine(user);
  expect((await here.svc("login", name, "--browser")).code).toBe(0);
  const folder = join(dirname(credentialsPath(user.env)), "mtls");
  writeFileSync(folder, "");
  const { code, stderr } = await here.svc("login", name, "--browser", "--certificate", "--force");
  expect([code, stderr]).toEqual([1, expect.stringMatching(/mtls.+; the certificate was revoked\n$/)]);
  expect(await listed(here)).toEqual([]);
  rmSync(folder);
  expect((await login(here, name)).code).toBe(0);
});

test("a renewal that cannot be stored does not fail the command, and keeps the certificate", async () => {
  const { name, user } = await somebody();
  const { user: here } = atMachine(user);
  expect((await login(here, name)).code).toBe(0);
  const [certificate] = filesOf(user).filter((path) => path.endsWith("certificate.pem"));
  const path = join(dirname(credentialsPath(user.env)), certificate!);
  const before = readFileSync(path, "utf8");
  mtls.server.clock.advance(19 * 3600);
  const { user: full } = atMachine(user, {
    fetchAs: async (url, init) => {
      const answer = await send(url, init);
      // As good as a full disk: nothing can be written there.
      if (init.method === "POST") mkdirSync(`${path}.next`);
      return answer;
    },
  });
  expect(await full.svc("--certificate", "whoami")).toMatchObject({ code: 0, stderr: "" });
  rmSync(`${path}.next`, { recursive: true });
  expect(readFileSync(path, "utf8")).toBe(before);
  mtls.server.clock.advance(301);
  expect((await here.svc("--certificate", "whoami")).code).toBe(0);
  expect(readFileSync(path, "utf8")).not.toBe(before);
});

test("the address for certificates may be on another host than the public one", async () => {
  const { name, user } = await somebody();
  const asked: string[] = [];
  const { user: here } = atMachine(user, {
    fetchAs: (url, init) => {
      asked.push(new URL(url).origin);
      return send(url, init);
    },
  });
  const config = mtls.server.config as { mtlsUrl?: string };
  const url = mtls.url.replace("127.0.0.1", "localhost");
  config.mtlsUrl = url;
  expect((await login(here, name)).code).toBe(0);
  config.mtlsUrl = mtls.url;
  asked.length = 0;
  expect((await here.svc("--certificate", "whoami")).code).toBe(0);
  expect((await here.svc("logout")).code).toBe(0);
  expect(asked).toContain(url);
  expect(asked).not.toContain(mtls.url);
  expect(filesOf(user)).toEqual([]);
});
