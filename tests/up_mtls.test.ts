import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSvc } from "../cli/testing/process.ts";
import { newCertificateRequest, newP256Key } from "./support/domain/certificate_request.ts";
import { issueTrialToken } from "./support/process/trial_token.ts";
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

test("npm start -- --mtls accepts certificates of svc, and a restart keeps authority and certificate", async () => {
  const [certificate, key] = [join(directory, "alice.pem"), join(directory, "alice.key")];
  let trusted: string[];
  {
    await using up = startUp(data, mtls, {}, npmStart);
    const address = await up.ready;
    const url = urlIn(up.output());
    // As a shell reads it.
    const [line] = /^ {2}export NODE_EXTRA_CA_CERTS=.+$/m.exec(up.output()) ?? [""];
    const named = Bun.spawnSync(["sh", "-c", `${line}; printf %s "$NODE_EXTRA_CA_CERTS"`]).stdout.toString();
    expect(named).toBe(join(data, "mtls/ca.pem"));
    trusted = ["--cacert", named];

    const token = await issueTrialToken(environmentOf(up.pid, "server start"), "alice@example.com", [
      "admin",
    ]);
    const ownKey = newP256Key();
    const answer = await fetch(`${address}/certificates/`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ csr: newCertificateRequest(ownKey) }),
    });
    const made = (await answer.json()) as { certificate: string; mtls_url: string };
    expect([answer.status, made.mtls_url]).toEqual([201, url]);
    writeFileSync(certificate, made.certificate);
    writeFileSync(key, ownKey.export({ type: "pkcs8", format: "pem" }));

    const client = [...trusted, "--cert", certificate, "--key", key];
    expect(curl(...client, `${url}/whoami`)).toMatch(/"user":"alice@example\.com".* 200$/);
    expect(curl(...trusted, `${url}/whoami`)).toEndWith(" 401");
    expect(curl(`${url}/whoami`)).toBe(" 000");
    // The command line, with the authority that the trial names.
    const env = { SVC_SERVER: url, SVC_TOKEN: token, HOME: directory };
    expect(await spawnSvc(["whoami"], { ...env, NODE_EXTRA_CA_CERTS: named }).finished).toMatchObject({
      code: 0,
    });
    expect((await spawnSvc(["whoami"], env).finished).stderr).toContain("set NODE_EXTRA_CA_CERTS");
  }
  const before = authority();
  await using up = startUp(data, mtls);
  await up.ready;
  expect(authority()).toBe(before);
  const client = [...trusted, "--cert", certificate, "--key", key];
  expect(curl(...client, `${urlIn(up.output())}/whoami`)).toMatch(/"user":"alice@example\.com".* 200$/);
});

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
