import { afterAll, expect, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import {
  asAuthority,
  CertificateFolder,
  derOf,
  type Issued,
} from "../../tests/support/http/client_certificates.ts";
import { processorMilliseconds } from "../../tests/support/process/processor_time.ts";
import { OrganisationAuthorities } from "./authorities.ts";
import { verifyChain } from "./chain.ts";

const certificates = new CertificateFolder();
afterAll(() => certificates[Symbol.dispose]());
const [one, two] = ["One", "Two"].map((name) =>
  certificates.issue({ subject: `/CN=${name}`, extensions: asAuthority }),
);
const file = certificates.at("authorities.pem");

test("reads the file again on reload, and keeps the authorities if it is invalid", async () => {
  copyFileSync(one!.certificate, file);
  const authorities = await OrganisationAuthorities.open(file);
  const subjects = () => authorities.current.authorities.map(({ subject }) => subject);
  expect(subjects()).toEqual(["CN=One"]);
  const { verified } = authorities.current;
  writeFileSync(file, readFileSync(one!.certificate, "utf8") + readFileSync(two!.certificate, "utf8"));
  await authorities.reload();
  expect(subjects()).toEqual(["CN=One", "CN=Two"]);
  // Chains that the previous authorities verified are verified again.
  expect(authorities.current.verified).not.toBe(verified);
  writeFileSync(file, readFileSync(one!.certificate, "utf8").slice(0, 200));
  await expect(authorities.reload()).rejects.toThrow(
    `SVC_MTLS_CA_CERTS: ${file} contains no certificate in PEM`,
  );
  expect(subjects()).toEqual(["CN=One", "CN=Two"]);
});

test("refuses a file with anything else", async () => {
  const of = (path: string) => expect(OrganisationAuthorities.open(path)).rejects;
  await of("/nowhere").toThrow("SVC_MTLS_CA_CERTS: /nowhere cannot be read: the file does not exist");
  const leaf = certificates.issue();
  await of(leaf.certificate).toThrow(/contains a certificate that is not a CA certificate \(number 1\)$/);
  writeFileSync(file, "-----BEGIN CERTIFICATE-----\nbm9pc2U=\n-----END CERTIFICATE-----\n");
  await of(file).toThrow(/contains a certificate that cannot be read \(number 1\)$/);
  expect((await OrganisationAuthorities.open(undefined)).current.authorities).toEqual([]);
});

test("applies revocation lists of its authorities, in any order", async () => {
  const [kept, revoked] = [certificates.issue({ by: one }), certificates.issue({ by: one })];
  const list = certificates.revocationList(one!, [revoked]);
  const others = certificates.revocationList(two!, [kept]);
  writeFileSync(
    file,
    others + list + [one!, two!].map(({ certificate }) => readFileSync(certificate)).join("\n"),
  );
  const { current } = await OrganisationAuthorities.open(file);
  const reasonOf = ({ certificate }: Issued) =>
    verifyChain([new Uint8Array(derOf(certificate))], current, {
      at: new Date(),
      usage: "1.3.6.1.5.5.7.3.2",
    }).then(
      () => "accepted",
      ({ reason }) => reason,
    );
  expect([await reasonOf(kept), await reasonOf(revoked)]).toEqual(["accepted", "revoked"]);
});

test("applies a revocation list to a negative serial number, which authorities must not use", async () => {
  const { name, certificate } = certificates.issue({ by: one });
  const request = ["-req", "-in", `${name}.csr`, "-extfile", `${name}.cnf`, "-extensions", "extensions"];
  const by = ["-CA", one!.certificate, "-CAkey", one!.key];
  certificates.run("x509", ...request, ...by, "-set_serial", "-5", "-out", certificate);
  writeFileSync(file, readFileSync(one!.certificate, "utf8") + certificates.revocationList(one!, ["-05"]));
  const { current } = await OrganisationAuthorities.open(file);
  const verified = verifyChain([new Uint8Array(derOf(certificate))], current, {
    at: new Date(),
    usage: "1.3.6.1.5.5.7.3.2",
  });
  await expect(verified).rejects.toMatchObject({ reason: "revoked" });
});

test("refuses a file with a revocation list that it cannot find", async () => {
  const list = certificates.revocationList(one!, ["0123AB"]);
  const der = Buffer.from(list.replaceAll(/-----.+?-----|\s/g, ""), "base64");
  const unseen = [list.slice(0, -30), list.replaceAll("X509 CRL", "CRL"), der];
  for (const text of unseen) {
    writeFileSync(file, Buffer.concat([readFileSync(one!.certificate), Buffer.from(text)]));
    await expect(OrganisationAuthorities.open(file)).rejects.toThrow(
      `${file} contains something else than complete certificates and revocation lists in PEM`,
    );
  }
  // As openssl x509 -text prints it.
  writeFileSync(file, `Certificate:\n    Data:\n${readFileSync(one!.certificate)}# a comment\n${list}`);
  expect((await OrganisationAuthorities.open(file)).current.revoked.size).toBe(1);
});

test("refuses a revocation list signed by another key", async () => {
  const impostor = certificates.issue({ subject: "/CN=One", extensions: asAuthority });
  writeFileSync(file, readFileSync(one!.certificate, "utf8") + certificates.revocationList(impostor, []));
  await expect(OrganisationAuthorities.open(file)).rejects.toThrow(
    /contains a revocation list of none of its authorities \(number 1\)$/,
  );
  const broken = "-----BEGIN X509 CRL-----\nbm9pc2U=\n-----END X509 CRL-----\n";
  writeFileSync(file, readFileSync(one!.certificate, "utf8") + broken);
  await expect(OrganisationAuthorities.open(file)).rejects.toThrow(/cannot be read \(number 1\)$/);
});

test("reads a revocation list of 20,000 certificates within a second of processor time", async () => {
  const serials = Array.from(
    { length: 20_000 },
    (_, at) => `5A${at.toString(16).toUpperCase().padStart(6, "0")}`,
  );
  const list = certificates.revocationList(one!, serials);
  writeFileSync(file, readFileSync(one!.certificate, "utf8") + list);
  const before = process.cpuUsage();
  const { revoked } = (await OrganisationAuthorities.open(file)).current;
  expect(processorMilliseconds(before)).toBeLessThan(1000);
  const [known] = revoked.values();
  expect([known!.size, known!.has("5a004e1f"), known!.has("5a004e20")]).toEqual([20_000, true, false]);
});

const rsaKey = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
const pss = ["-sigopt", "rsa_padding_mode:pss"];
test.each([
  ["RSA", rsaKey, ["-md", "sha256"]],
  ["RSA with SHA-512", rsaKey, ["-md", "sha512"]],
  ["RSA-PSS", rsaKey, ["-md", "sha256", ...pss]],
  ["RSA-PSS with SHA-384", rsaKey, ["-md", "sha384", ...pss]],
  ["P-384", ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"], ["-md", "sha384"]],
  ["Ed25519", ["-algorithm", "ED25519"], ["-md", "null"]],
])("verifies revocation lists signed with %s", async (_, key, options) => {
  const signer = { subject: "/CN=Signer", extensions: asAuthority, key };
  const digest = options[1];
  const [by, impostor] = [
    certificates.issue({ ...signer, digest }),
    certificates.issue({ ...signer, digest }),
  ];
  const list = certificates.revocationList(by, ["0123AB"], options);
  // Of the same name, and one with another type of key.
  const all = [impostor, one!, by].map(({ certificate }) => readFileSync(certificate, "utf8"));
  writeFileSync(file, all.join("") + list);
  const { revoked } = (await OrganisationAuthorities.open(file)).current;
  expect([...revoked.values()].map((serials) => [...serials])).toEqual([["123ab"]]);
  writeFileSync(file, readFileSync(impostor.certificate, "utf8") + list);
  await expect(OrganisationAuthorities.open(file)).rejects.toThrow(/of none of its authorities/);
  const other = certificates.issue({ subject: "/CN=Signer", extensions: asAuthority });
  writeFileSync(file, readFileSync(other.certificate, "utf8") + list);
  await expect(OrganisationAuthorities.open(file)).rejects.toThrow(/of none of its authorities/);
});

test("damaged revocation lists are refused, and cause no other error", async () => {
  const pem = certificates.revocationList(one!, ["0123AB", "0456CD"]);
  const der = Buffer.from(pem.replaceAll(/-----.+?-----|\s/g, ""), "base64");
  const authority = readFileSync(one!.certificate, "utf8");
  for (let at = 0; at < der.length; at += 1) {
    const damaged = Buffer.from(der);
    damaged[at] = damaged[at]! ^ 0x15;
    const text = `-----BEGIN X509 CRL-----\n${damaged.toString("base64")}\n-----END X509 CRL-----\n`;
    writeFileSync(file, authority + text);
    await expect(OrganisationAuthorities.open(file)).rejects.toThrow(
      /revocation list (that cannot be read|of none of its authorities)/,
    );
  }
});
