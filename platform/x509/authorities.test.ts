import { afterAll, expect, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import {
  asAuthority,
  CertificateFolder,
  derOf,
  type Issued,
} from "../../tests/support/http/client_certificates.ts";
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
  await of(leaf.certificate).toThrow(/contains a certificate that is no authority \(number 1\)$/);
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
    verifyChain([new Uint8Array(derOf(certificate))], current, "1.3.6.1.5.5.7.3.2").then(
      () => "accepted",
      ({ reason }) => reason,
    );
  expect([await reasonOf(kept), await reasonOf(revoked)]).toEqual(["accepted", "revoked"]);
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
