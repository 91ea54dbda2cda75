import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openssl } from "../../tests/support/process/openssl.ts";
import {
  createX509Authority,
  parseP256PublicKey,
  permitsEmail,
  permitsUri,
  signX509Certificate,
  signX509RevocationList,
  type X509CertificateFacts,
  type X509Signer,
} from "./certificate.ts";

let directory: string;
let authority: X509Signer;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-x509-"));
  authority = await createX509Authority("default", new Date(), "example.com");
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const seconds = (count: number) => new Date(Date.now() + count * 1000);
const spki = (key: KeyObject) => key.export({ type: "spki", format: "pem" }) as string;
const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" });

async function sign(more: Partial<X509CertificateFacts> = {}, signer = authority) {
  return signX509Certificate(
    {
      publicKey: parseP256PublicKey(spki(newKey().publicKey)),
      commonName: "alice@example.com",
      email: "alice@example.com",
      notBefore: seconds(-60),
      notAfter: seconds(3600),
      crlUrl: "https://svc.example.com/crl",
      ...more,
    },
    signer,
  );
}

let made = 0;
async function file(content: string | Uint8Array): Promise<string> {
  const path = join(directory, `file-${++made}`);
  await writeFile(path, content);
  return path;
}

/** Returns the output of `openssl verify`, run with the revocation list if one is given. */
async function verify(
  certificate: string,
  { crl, signer = authority }: { crl?: Buffer; signer?: X509Signer } = {},
) {
  const list = crl && (await file(pem("X509 CRL", crl)));
  const check = list ? ["-crl_check", "-CRLfile", list] : [];
  const path = await file(certificate);
  const said = openssl(
    "verify",
    "-x509_strict",
    "-purpose",
    "sslclient",
    ...check,
    "-CAfile",
    await file(signer.public),
    path,
  );
  return said.replaceAll(`${path}: `, "").trim();
}

const pem = (label: string, bytes: Buffer) =>
  `-----BEGIN ${label}-----\n${bytes
    .toString("base64")
    .match(/.{1,64}/g)!
    .join("\n")}\n-----END ${label}-----\n`;

const listOf = (serials: string[], { at = new Date(), next = seconds(3600), signer = authority } = {}) =>
  signX509RevocationList(
    { revoked: serials.map((serial) => ({ serial, revokedAt: at })), at, nextUpdate: next, number: 300 },
    signer,
  );

test("openssl accepts a certificate and shows its subject and usage", async () => {
  const { certificate, serial } = await sign({ uri: "https://svc.example.com/users/alice" });
  expect(await verify(certificate)).toBe("OK");
  const text = openssl("x509", "-noout", "-text", "-in", await file(certificate));
  const lines = text.split("\n").map((line) => line.trim());
  for (const line of [
    "Subject: CN = alice@example.com",
    "CA:FALSE",
    "X509v3 Key Usage: critical",
    "Digital Signature",
    "TLS Web Client Authentication",
    "email:alice@example.com, URI:https://svc.example.com/users/alice",
    "URI:https://svc.example.com/crl",
    "ASN1 OID: prime256v1",
  ])
    expect(lines).toContain(line);
  expect(serial).toMatch(/^[4-7][0-9a-f]{31}$/);
  expect(text.replaceAll(/[:\s]/g, "")).toContain(serial);
  expect((await sign()).serial).not.toBe(serial);
});

test("a common name that looks like DER in hexadecimal does not become another one", async () => {
  // With a 0 before it, DER of the text victim.someone@sub.example.com.
  const der = "c1e76696374696d2e736f6d656f6e65407375622e6578616d706c652e636f6d";
  for (const commonName of [`#${der}`, "#a@example.com"]) {
    const { certificate } = await sign({ commonName });
    const path = await file(certificate);
    expect(openssl("x509", "-noout", "-subject", "-nameopt", "utf8", "-in", path)).toContain(
      `CN=${commonName}`,
    );
  }
});

test.each([
  ["alice@example.com", "email:alice@example.com"],
  // Written as bytes, its first letter would be an "a".
  ["\u0161lice@example.com", "othername: SmtpUTF8Mailbox::\u0161lice@example.com"],
  ["alice@b\u00fccher.example", "email:alice@xn--bcher-kva.example"],
])("the certificate of %s names %s, and no one else", async (email, name) => {
  const signer = await createX509Authority("default", new Date(), email.slice(email.indexOf("@") + 1));
  const { certificate } = await sign({ commonName: email, email }, signer);
  const shown = openssl("x509", "-noout", "-ext", "subjectAltName", "-in", await file(certificate));
  expect(shown.split("\n")[1]?.trim()).toBe(name);
  expect(await verify(certificate, { signer })).toBe("OK");
  expect(permitsEmail(signer.public, email)).toBe(true);
});

test("a long name is shortened between two characters", async () => {
  const name = `a${"\u{10330}".repeat(63)}`;
  const { certificate } = await sign({ commonName: `${name}@example.com` });
  expect(new X509Certificate(certificate).subject).toBe(`CN=${name}`);
});

test("an authority can sign only for TLS clients of its domain", async () => {
  const text = openssl("x509", "-noout", "-text", "-in", await file(authority.public));
  for (const part of [
    "CA:TRUE, pathlen:0",
    "Certificate Sign, CRL Sign",
    "X509v3 Name Constraints: critical",
    "email:example.com",
  ])
    expect(text).toContain(part);
  expect(text).not.toContain("TLS Web Server Authentication");
  const other = await sign({ email: "alice@example.org" });
  expect(await verify(other.certificate)).toContain("permitted subtree violation");
  expect(await verify((await sign({ email: "alice@sub.example.com" })).certificate)).toContain(
    "permitted subtree violation",
  );
  expect(await verify((await sign({ uri: "https://example.org/" })).certificate)).toContain(
    "permitted subtree violation",
  );
  expect([
    permitsEmail(authority.public, "bob@example.com"),
    permitsEmail(authority.public, "bob@example.org"),
    permitsEmail((await createX509Authority("any", new Date(), undefined)).public, "bob@example.org"),
  ]).toEqual([true, false, true]);
});

test.each([
  ["https://example.com/", true],
  ["spiffe://prod.example.com/alice", true],
  ["spiffe://Prod.Example.com/alice", true],
  ["spiffe://anexample.com/alice", false],
  ["spiffe://com/alice", false],
])("an authority knows whether it can sign for %s", async (uri, can) => {
  expect(permitsUri(authority.public, uri)).toBe(can);
  expect((await verify((await sign({ uri })).certificate)) === "OK").toBe(can);
});

test("a certificate cannot be used for a server, or to sign others", async () => {
  const { publicKey, privateKey } = newKey();
  const { certificate } = await sign({ publicKey: parseP256PublicKey(spki(publicKey)) });
  const server = openssl(
    "verify",
    "-purpose",
    "sslserver",
    "-CAfile",
    await file(authority.public),
    await file(certificate),
  );
  expect(server).toContain("unsuitable certificate purpose");
  const child = await sign({}, { public: certificate, privateKey });
  const both = await file(`${authority.public}${certificate}`);
  const said = openssl(
    "verify",
    "-CAfile",
    await file(authority.public),
    "-untrusted",
    both,
    await file(child.certificate),
  );
  expect(said).toMatch(/invalid CA certificate|unable to get/);
});

test("openssl refuses certificates that are expired, not yet valid, foreign or tampered with", async () => {
  expect(await verify((await sign({ notAfter: seconds(-5) })).certificate)).toContain(
    "certificate has expired",
  );
  expect(await verify((await sign({ notBefore: seconds(60) })).certificate)).toContain(
    "certificate is not yet valid",
  );
  const other = await createX509Authority("default", new Date(), "example.com");
  expect(await verify((await sign({}, other)).certificate)).toContain(
    "unable to get local issuer certificate",
  );
  const bytes = Buffer.from((await sign()).certificate.replaceAll(/-----.*-----|\s/g, ""), "base64");
  bytes[bytes.length - 5]! ^= 1;
  expect(await verify(pem("CERTIFICATE", bytes))).toContain("signature failure");
});

test("an authority can be created in the bundled executable", async () => {
  const entry = await file("");
  const module = join(import.meta.dir, "certificate.ts");
  await writeFile(
    `${entry}.ts`,
    `const { createX509Authority } = await import(${JSON.stringify(module)});
     console.log((await createX509Authority("default", new Date(), "example.com")).public);`,
  );
  const built = await Bun.build({
    entrypoints: [`${entry}.ts`],
    target: "bun",
    format: "esm",
    minify: true,
    outdir: join(directory, "built"),
  });
  const ran = Bun.spawnSync([process.execPath, built.outputs[0]!.path]);
  expect(`${ran.stdout}${ran.stderr}`).toStartWith("-----BEGIN CERTIFICATE-----");
});

describe("a revocation list", () => {
  test("revokes only its serial numbers", async () => {
    const [kept, revoked, after] = [await sign(), await sign(), await sign()];
    const crl = await listOf([revoked.serial, after.serial]);
    const said = await Promise.all(
      [kept, revoked, after].map(({ certificate }) => verify(certificate, { crl })),
    );
    expect(said).toEqual(["OK", expect.stringContaining("revoked"), expect.stringContaining("revoked")]);
    const text = openssl("crl", "-noout", "-text", "-inform", "DER", "-in", await file(crl));
    expect(text).toMatch(/X509v3 CRL Number:\s+300/);
    expect(text.replaceAll(/[:\s]/g, "").toLowerCase()).toContain(revoked.serial);
  });

  test("without entries revokes nothing", async () => {
    expect(await verify((await sign()).certificate, { crl: await listOf([]) })).toBe("OK");
  });

  test("can be valid after 2049", async () => {
    const list = await file(await listOf([], { next: new Date("2060-02-03T04:05:06Z") }));
    const text = openssl("crl", "-noout", "-nextupdate", "-inform", "DER", "-in", list);
    expect(text).toContain("Feb  3 04:05:06 2060 GMT");
  });

  test("is not accepted from another key or after its next update", async () => {
    const { certificate } = await sign();
    const other = await createX509Authority("default", new Date(), "example.com");
    expect(await verify(certificate, { crl: await listOf([], { signer: other }) })).toContain(
      "unable to get certificate CRL",
    );
    const old = await listOf([], { at: seconds(-7200), next: seconds(-3600) });
    expect(await verify(certificate, { crl: old })).toContain("CRL has expired");
  });
});

describe("a public key is refused", () => {
  const curve = (namedCurve: string) => spki(generateKeyPairSync("ec", { namedCurve }).publicKey);
  const good = spki(newKey().publicKey);
  test.each([
    ["of another curve", curve("P-384"), "P-256"],
    ["of another type", spki(generateKeyPairSync("ed25519").publicKey), "P-256"],
    ["that is RSA", spki(generateKeyPairSync("rsa", { modulusLength: 3072 }).publicKey), "PEM|P-256"],
    ["that is private", newKey().privateKey.export({ type: "pkcs8", format: "pem" }) as string, "PEM"],
    ["with two blocks", `${good}${good}`, "PEM"],
    ["that is empty", "", "PEM"],
    ["that is truncated", good.replace(/^(-----.*\n.{40})[^-]*/, "$1\n"), "read"],
    [
      "with trailing bytes",
      pem("PUBLIC KEY", Buffer.concat([parseP256PublicKey(good), Buffer.of(0)])),
      "read|canonical",
    ],
  ])("%s", (_, text, why) => {
    expect(() => parseP256PublicKey(text)).toThrow(new RegExp(why));
  });
});
