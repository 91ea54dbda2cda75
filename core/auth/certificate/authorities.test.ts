import { afterAll, expect, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { asAuthority, CertificateFolder } from "../../../tests/support/http/client_certificates.ts";
import { OrganisationAuthorities } from "./authorities.ts";

const certificates = new CertificateFolder();
afterAll(() => certificates[Symbol.dispose]());
const [one, two] = ["One", "Two"].map((name) =>
  certificates.issue({ subject: `/CN=${name}`, extensions: asAuthority }),
);
const file = certificates.at("authorities.pem");

test("reads the file again on reload, and keeps the authorities when it is broken", () => {
  copyFileSync(one!.certificate, file);
  const authorities = new OrganisationAuthorities(file);
  const subjects = () => authorities.current.authorities.map(({ subject }) => subject);
  expect(subjects()).toEqual(["CN=One"]);
  const { verified } = authorities.current;
  writeFileSync(file, readFileSync(one!.certificate, "utf8") + readFileSync(two!.certificate, "utf8"));
  authorities.reload();
  expect(subjects()).toEqual(["CN=One", "CN=Two"]);
  // What the previous authorities verified counts no longer.
  expect(authorities.current.verified).not.toBe(verified);
  writeFileSync(file, readFileSync(one!.certificate, "utf8").slice(0, 200));
  expect(() => authorities.reload()).toThrow(`SVC_MTLS_CA_CERTS: ${file} contains no certificate in PEM`);
  expect(subjects()).toEqual(["CN=One", "CN=Two"]);
});

test("refuses a file with something else", () => {
  const of = (path: string) => () => new OrganisationAuthorities(path);
  expect(of("/nowhere")).toThrow("SVC_MTLS_CA_CERTS: /nowhere cannot be read: the file does not exist");
  const leaf = certificates.issue();
  expect(of(leaf.certificate)).toThrow(/contains a certificate that is no authority \(number 1\)$/);
  writeFileSync(file, "-----BEGIN CERTIFICATE-----\nbm9pc2U=\n-----END CERTIFICATE-----\n");
  expect(of(file)).toThrow(/contains a certificate that cannot be read \(number 1\)$/);
  expect(new OrganisationAuthorities(undefined).current.authorities).toEqual([]);
});
