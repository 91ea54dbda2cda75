import { afterEach, beforeEach, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prepareLocalCertificates } from "./local_certificates.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "svc-local-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const now = new Date("2026-11-23T12:00:00Z");
const inDays = (days: number) => new Date(now.getTime() + days * 86_400_000);
const prepare = (names: readonly string[] = ["localhost"], at = now) =>
  prepareLocalCertificates(directory, names, at);
const text = (file: string) => readFileSync(join(directory, file), "utf8");
const openssl = (...args: string[]) => Bun.spawnSync(["openssl", ...args], { cwd: directory });
const verified = (host: string) =>
  openssl(
    "verify",
    "-x509_strict",
    "-purpose",
    "sslserver",
    "-attime",
    String(now.getTime() / 1000),
    "-verify_hostname",
    host,
    "-CAfile",
    "ca.pem",
    "server.pem",
  ).success;

test("makes a certificate that openssl accepts for its names only, with keys for the owner only", async () => {
  expect(await prepare()).toEqual({
    authority: join(directory, "ca.pem"),
    certificate: join(directory, "server.pem"),
    key: join(directory, "server.key"),
  });
  expect([verified("localhost"), verified("svc.example.com")]).toEqual([true, false]);
  for (const file of ["ca.key", "server.key"])
    expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory).sort()).toEqual(["ca.key", "ca.pem", "server.key", "server.pem"]);
});

test("its authority can vouch for no other host, no address, and no client", async () => {
  await prepare();
  openssl("req", "-new", "-key", "server.key", "-subj", "/", "-out", "other.csr");
  const accepted = (name: string, purpose: string) => {
    writeFileSync(join(directory, "names"), `subjectAltName=${name}\n`);
    const signer = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30"];
    const made = openssl(
      "x509",
      "-req",
      "-in",
      "other.csr",
      ...signer,
      "-extfile",
      "names",
      "-out",
      "other.pem",
    );
    expect(made.success).toBe(true);
    return openssl("verify", "-no_check_time", "-purpose", purpose, "-CAfile", "ca.pem", "other.pem").success;
  };
  expect(accepted("DNS:localhost", "sslserver")).toBe(true);
  expect(accepted("DNS:bank.example", "sslserver")).toBe(false);
  expect(accepted("IP:127.0.0.1", "sslserver")).toBe(false);
  expect(accepted("DNS:localhost", "sslclient")).toBe(false);
});

test("keeps both, and replaces the certificate before it ends", async () => {
  await prepare();
  const [authority, certificate] = [text("ca.pem"), text("server.pem")];
  await prepare(undefined, inDays(300));
  expect([text("ca.pem"), text("server.pem")]).toEqual([authority, certificate]);
  await prepare(undefined, inDays(340));
  expect(text("ca.pem")).toBe(authority);
  expect(new X509Certificate(text("server.pem")).validToDate).toEqual(inDays(340 + 397));
});

test("replaces the authority before it ends, and one of a clock that was ahead", async () => {
  await prepare();
  const first = text("ca.pem");
  await prepare(undefined, inDays(3640));
  const second = text("ca.pem");
  expect(second).not.toBe(first);
  await prepare();
  expect(text("ca.pem")).not.toBe(second);
  expect(verified("localhost")).toBe(true);
});

test.each(["ca.pem", "ca.key", "server.pem", "server.key"])(
  "repairs what an interrupted start has left of %s",
  async (file) => {
    await prepare();
    truncateSync(join(directory, file), 40);
    await prepare();
    expect(verified("localhost")).toBe(true);
    rmSync(join(directory, file));
    await prepare();
    expect(verified("localhost")).toBe(true);
  },
);

test("does not use a key that belongs to another certificate", async () => {
  await prepare();
  const key = text("ca.key");
  rmSync(directory, { recursive: true });
  await prepare();
  writeFileSync(join(directory, "ca.key"), key);
  await prepare();
  expect(verified("localhost")).toBe(true);
});

test("a server with another name gets another authority, and names do not depend on their order", async () => {
  await prepare(["localhost", "svc.test"]);
  const authority = text("ca.pem");
  expect([verified("localhost"), verified("svc.test")]).toEqual([true, true]);
  await prepare(["svc.test", "localhost", "svc.test"]);
  expect(text("ca.pem")).toBe(authority);
  await prepare();
  expect([verified("localhost"), verified("svc.test")]).toEqual([true, false]);
});

test("our own client accepts the certificate of a server that has an address", async () => {
  const { authority, certificate, key } = await prepare(["localhost", "127.0.0.1"]);
  await using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { key: Bun.file(key), cert: Bun.file(certificate) },
    fetch: () => new Response("here"),
  });
  const tls = { ca: readFileSync(authority, "utf8") };
  for (const host of ["127.0.0.1", "localhost"])
    expect(await (await fetch(`https://${host}:${server.port}/`, { tls })).text()).toBe("here");
});
