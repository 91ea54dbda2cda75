import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestBrowser } from "./support/browser/browser.ts";
import { spawnSvc } from "./support/cli/process.ts";
import { environmentOf, npmStart, startUp } from "./support/process/up.ts";

// docs/mutual-tls.md, "Try it".

setDefaultTimeout(60_000);

let directory: string;
let data: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-up-mtls-"));
  data = join(directory, "it's data");
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const mtls = ["--no-example", "--mtls", "--mtls-port", "0"];
const authority = () => readFileSync(join(data, "mtls/ca.pem"), "utf8");
const urlIn = (output: string) => /Mutual TLS +(https:\/\/localhost:\d+)$/m.exec(output)![1]!;
const curl = (...args: string[]) =>
  Bun.spawnSync(["curl", "-s", "-w", " %{http_code}", ...args]).stdout.toString();

test("svc login --certificate, svc --certificate and curl work, also after a restart", async () => {
  const home = join(directory, "home");
  const env = { XDG_CONFIG_HOME: home, BROWSER: "true" };
  let client: string[];
  let url: string;
  {
    await using up = startUp(data, mtls, {}, npmStart);
    const address = await up.ready;
    url = urlIn(up.output());
    // As a shell reads it.
    const [line] = /^ {2}export NODE_EXTRA_CA_CERTS=.+$/m.exec(up.output()) ?? [""];
    const trusted = Bun.spawnSync([
      "sh",
      "-c",
      `${line}; printf %s "$NODE_EXTRA_CA_CERTS"`,
    ]).stdout.toString();
    expect(trusted).toBe(join(data, "mtls/ca.pem"));
    expect(up.output()).toContain(`  npx svc login alice@example.com --server ${address} --certificate\n`);
    const login = spawnSvc(["login", "alice@example.com", "--server", address, "--certificate", "--json"], {
      ...env,
      NODE_EXTRA_CA_CERTS: trusted,
    });
    await approve(await challengeUrl(login), "alice@example.com");
    const { code, stdout, stderr } = await login.finished;
    expect(code, stderr).toBe(0);
    const { certificate } = JSON.parse(stdout);
    expect(certificate.url).toBe(url);
    expect(statSync(certificate.key).mode & 0o777).toBe(0o600);

    const svc = (...args: string[]) => spawnSvc(args, { ...env, NODE_EXTRA_CA_CERTS: trusted }).finished;
    expect(await svc("--certificate", "whoami", "--json")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"alice@example.com"'),
    });
    // With nothing but the certificate.
    expect(
      JSON.parse((await svc("certificates", "list", "--certificate", "--json")).stdout).items,
    ).toHaveLength(1);
    const stranger = await spawnSvc(["--certificate", "whoami"], env).finished;
    expect([stranger.code === 0, stranger.stderr]).toEqual([
      false,
      expect.stringContaining("set NODE_EXTRA_CA_CERTS to its PEM file"),
    ]);

    client = ["--cacert", trusted, "--cert", certificate.certificate, "--key", certificate.key];
    expect(curl(...client, `${url}/whoami`)).toMatch(/"user":"alice@example\.com".* 200$/);
    expect(curl("--cacert", trusted, `${url}/whoami`)).toEndWith(" 401");
    expect(curl(`${url}/whoami`)).toBe(" 000");
  }
  const before = authority();
  await using up = startUp(data, [...mtls.slice(0, -1), new URL(url).port]);
  await up.ready;
  expect(authority()).toBe(before);
  expect(urlIn(up.output())).toBe(url);
  expect(curl(...client, `${url}/whoami`)).toMatch(/"user":"alice@example\.com".* 200$/);
});

/** The address that `svc login` prints for the browser. */
async function challengeUrl(login: ReturnType<typeof spawnSvc>): Promise<string> {
  await login.says("/challenge_validator/");
  return /http\S+\/challenge_validator\/[\w-]+/.exec(login.said())![0];
}

/** What a person does in the browser. */
async function approve(url: string, user: string): Promise<void> {
  const browser = new TestBrowser();
  const signIn = await browser.open(url);
  const { origin } = new URL(signIn.url);
  const person = { user, password: "trial-password" };
  const answer = await browser.submit(signIn.url, signIn.text, person, { origin });
  const page = await browser.open(new URL(answer.headers.get("location")!, signIn.url).href);
  const approved = await browser.submit(page.url, page.text, { decision: "approve" });
  expect(approved.status, page.text).toBeLessThan(400);
}

test("SVC_MTLS_URL takes precedence, and the certificate has its name", async () => {
  await using up = startUp(join(directory, "named"), mtls, { SVC_MTLS_URL: "https://svc.test:8443" });
  await up.ready;
  const { SVC_MTLS_URL } = environmentOf(up.pid, "server start");
  expect(SVC_MTLS_URL).toBe("https://svc.test:8443");
  const file = readFileSync(join(directory, "named/mtls/server.pem"), "utf8");
  expect(new X509Certificate(file).subjectAltName).toBe("DNS:localhost, DNS:svc.test");
});

test("without --mtls there is no such port, no authority and no address for clients", async () => {
  await using up = startUp(join(directory, "plain"), ["--no-example"]);
  await up.ready;
  expect(up.output()).not.toContain("Mutual TLS");
  expect(environmentOf(up.pid, "server start").SVC_MTLS_URL).toBeUndefined();
  expect(await Bun.file(join(directory, "plain/mtls/ca.pem")).exists()).toBe(false);
});
