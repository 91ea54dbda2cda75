import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { certificateWarnings, mtlsFilesOf, tlsOf } from "./tls.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-tls-"));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string) => join(folder, name);

function openssl(...args: string[]): void {
  const { success, stderr } = Bun.spawnSync(["openssl", ...args], { cwd: folder });
  if (!success) throw new Error(stderr.toString());
}
for (const name of ["one", "two"]) {
  const place = ["-keyout", `${name}.key`, "-out", `${name}.pem`];
  openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", ...place);
}
openssl("rsa", "-aes256", "-passout", "pass:secret", "-in", "one.key", "-out", "locked.key");
writeFileSync(at("noise"), "noise");
const broken = "-----BEGIN CERTIFICATE-----\nnoise\n-----END CERTIFICATE-----\n";
const one = readFileSync(at("one.pem"), "utf8");
writeFileSync(at("broken.pem"), one + broken);
writeFileSync(at("truncated.pem"), one + one.slice(0, 400));
writeFileSync(at("gap.pem"), `${one}${one.slice(0, 400)}\n${one}`);

const files = (key: string, certificate: string, authorities?: string) => ({
  sslKeyfile: at(key),
  sslCertfile: at(certificate),
  sslCaCerts: authorities === undefined ? undefined : at(authorities),
});

test("accepts a key and its certificate, and client authorities", () => {
  expect(tlsOf({})).toBeUndefined();
  expect(tlsOf(files("one.key", "one.pem"))).not.toHaveProperty("ca");
  expect(tlsOf(files("one.key", "one.pem", "two.pem"))).toMatchObject({
    requestCert: true,
    rejectUnauthorized: true,
  });
});

test.each([
  [
    files("two.key", "one.pem"),
    `--ssl-keyfile: ${at("two.key")} is not the key of the first certificate in ${at("one.pem")}`,
  ],
  [
    files("locked.key", "one.pem"),
    `--ssl-keyfile: ${at("locked.key")} is encrypted with a password, which is not supported`,
  ],
  [files("noise", "one.pem"), `--ssl-keyfile: ${at("noise")} holds no private key in PEM`],
  [files("one.pem", "one.pem"), `--ssl-keyfile: ${at("one.pem")} holds no private key in PEM`],
  [files("one.key", "noise"), `--ssl-certfile: ${at("noise")} does not begin with a certificate in PEM`],
  [files("one.key", "one.key"), `--ssl-certfile: ${at("one.key")} does not begin with a certificate in PEM`],
  [
    files("one.key", "one.pem", "noise"),
    `--ssl-ca-certs: ${at("noise")} does not begin with a certificate in PEM`,
  ],
  [
    files("one.key", "broken.pem"),
    `--ssl-certfile: ${at("broken.pem")} contains a certificate after the first that cannot be read`,
  ],
  [
    files("one.key", "one.pem", "broken.pem"),
    `--ssl-ca-certs: ${at("broken.pem")} contains a certificate after the first that cannot be read`,
  ],
  ...["truncated.pem", "gap.pem"].map((name): [ReturnType<typeof files>, string] => [
    files("one.key", name),
    `--ssl-certfile: ${at(name)} contains a certificate after the first that cannot be read`,
  ]),
  [files("one.key", "nowhere"), `--ssl-certfile: cannot read ${at("nowhere")}: the file does not exist`],
  [files("nowhere", "one.pem"), `--ssl-keyfile: cannot read ${at("nowhere")}: the file does not exist`],
  [
    files("one.key", "one.pem", "nowhere"),
    `--ssl-ca-certs: cannot read ${at("nowhere")}: the file does not exist`,
  ],
])("%p: %s", (options, sentence) => {
  expect(() => tlsOf(options)).toThrow(new RegExp(`^${RegExp.escape(sentence)}$`));
});

test("names the option of the mTLS port", () => {
  const of = (key: string, certificate: string) => {
    const own = mtlsFilesOf({ mtlsKeyfile: at(key), mtlsCertfile: at(certificate) });
    return () => tlsOf(own);
  };
  expect(of("one.key", "one.pem")).not.toThrow();
  expect(of("two.key", "one.pem")).toThrow(/^--mtls-keyfile: .* is not the key of the first certificate/);
  expect(of("noise", "one.pem")).toThrow(/^--mtls-keyfile: .* holds no private key in PEM$/);
  expect(of("one.key", "nowhere")).toThrow(/^--mtls-certfile: cannot read .*: the file does not exist$/);
  // Without files of its own, it has the other port's, but no required certificates.
  expect(tlsOf(mtlsFilesOf(files("one.key", "one.pem", "two.pem")))).not.toHaveProperty("requestCert");
});

test("warns of a certificate that clients would refuse now", () => {
  const days = (count: number) => new Date(Date.now() + count * 86_400_000);
  const warnings = (count: number) => certificateWarnings(files("one.key", "one.pem"), days(count));
  const expired = String.raw`\.pem has expired at \S+Z: clients will refuse it$`;
  expect(warnings(0.5)).toEqual([]);
  expect(warnings(3)).toEqual([expect.stringMatching(new RegExp(expired))]);
  expect(warnings(-1)).toEqual([
    expect.stringMatching(/one\.pem is valid from \S+Z on: until then clients will refuse it$/),
  ]);
  expect(certificateWarnings({}, days(0))).toEqual([]);
  const own = { mtlsKeyfile: at("two.key"), mtlsCertfile: at("two.pem") };
  expect(certificateWarnings({ ...files("one.key", "one.pem"), ...own }, days(3))).toEqual([
    expect.stringMatching(new RegExp(`^--ssl-certfile: .*one${expired}`)),
    expect.stringMatching(new RegExp(`^--mtls-certfile: .*two${expired}`)),
  ]);
});
