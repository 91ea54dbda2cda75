import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { after } from "../platform/clock.ts";
import { loadX509 } from "../platform/x509/authorities.ts";
import { newSerial, privateCryptoKey, publicCryptoKey } from "../platform/x509/certificate.ts";
import { derElement } from "../platform/x509/der.ts";

// The mTLS port of a trial needs a server certificate, which is replaced before it expires. An authority of this trial
// signs it. Clients have to trust that authority, so it is kept, and it can sign for no other names than the server's:
// its key is in a file on this machine.

const daySeconds = 24 * 3600;
const authorityDays = 10 * 365;
/** Apple's clients refuse more than 825 days, even from a private authority, and others more than 398. */
const certificateDays = 397;
/** A trial is restarted more often than that. */
const renewalDays = 60;
const backdatedDays = 1;
const nameConstraints = "2.5.29.30";

/** Paths of PEM files. The keys are readable by their owner only. */
export interface LocalCertificates {
  authority: string;
  certificate: string;
  key: string;
}

interface Pair {
  certificate: string;
  key: string;
}

/**
 * Returns the files in `directory` of a server with these host names and addresses. Creates those that are missing,
 * unusable or about to expire.
 */
export async function prepareLocalCertificates(
  directory: string,
  names: readonly string[],
  now: Date,
): Promise<LocalCertificates> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const keep = {
    authority: { certificate: join(directory, "ca.pem"), key: join(directory, "ca.key") },
    server: { certificate: join(directory, "server.pem"), key: join(directory, "server.key") },
  };
  const wanted = [...new Set(names)].sort();
  let authority = read(keep.authority);
  if (!authority || !lasts(authority, now) || !(await isFor(authority, wanted))) {
    authority = await createAuthority(wanted, now);
    write(keep.authority, authority);
  }
  const server = read(keep.server);
  if (!server || !lasts(server, now) || !isSignedBy(server, authority) || !has(server, wanted))
    write(keep.server, await createCertificate(authority, wanted, now));
  return { authority: keep.authority.certificate, ...keep.server };
}

/** Undefined unless both files exist and belong together: a start may have been interrupted between them. */
function read(files: Pair): Pair | undefined {
  try {
    const pair = {
      certificate: readFileSync(files.certificate, "utf8"),
      key: readFileSync(files.key, "utf8"),
    };
    const fits = new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.key));
    return fits ? pair : undefined;
  } catch {
    return undefined;
  }
}

function write(files: Pair, { certificate, key }: Pair): void {
  for (const [file, text] of [
    [files.key, key],
    [files.certificate, certificate],
  ] as const) {
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}

function lasts({ certificate }: Pair, now: Date): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  return validFromDate <= now && after(now, renewalDays * daySeconds) < validToDate;
}

async function isFor({ certificate }: Pair, names: readonly string[]): Promise<boolean> {
  const x509 = await loadX509();
  const { extensions } = new x509.X509Certificate(certificate);
  const constraints = extensions.find(({ type }) => type === nameConstraints);
  return constraints !== undefined && Buffer.from(constraints.value).equals(constraintsFor(names));
}

function isSignedBy({ certificate }: Pair, authority: Pair): boolean {
  return new X509Certificate(certificate).verify(new X509Certificate(authority.certificate).publicKey);
}

function has({ certificate }: Pair, names: readonly string[]): boolean {
  const found = new X509Certificate(certificate);
  return names.every((name) =>
    isIP(name) ? found.checkIP(name) !== undefined : found.checkHost(name) !== undefined,
  );
}

async function createAuthority(names: readonly string[], now: Date): Promise<Pair> {
  const x509 = await loadX509();
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const serialNumber = newSerial();
  const subject = [{ CN: [`svc trial ${serialNumber.slice(0, 8)}`] }];
  const verificationKey = await publicCryptoKey(publicKey);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber,
    subject,
    issuer: subject,
    publicKey: verificationKey,
    signingKey: await privateCryptoKey(privateKey),
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    notBefore: after(now, -backdatedDays * daySeconds),
    notAfter: after(now, authorityDays * daySeconds),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.Extension(nameConstraints, true, new Uint8Array(constraintsFor(names))),
      await x509.SubjectKeyIdentifierExtension.create(verificationKey),
    ],
  });
  return { certificate: `${certificate.toString("pem")}\n`, key: pem(privateKey) };
}

async function createCertificate(
  { certificate, key }: Pair,
  names: readonly string[],
  now: Date,
): Promise<Pair> {
  const x509 = await loadX509();
  const authority = new x509.X509Certificate(certificate);
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const made = await x509.X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: [{ CN: [names[0]!] }],
    issuer: authority.subjectName,
    publicKey: await publicCryptoKey(publicKey),
    signingKey: await privateCryptoKey(createPrivateKey(key)),
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    notBefore: after(now, -backdatedDays * daySeconds),
    notAfter: after(now, certificateDays * daySeconds),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) ? ("ip" as const) : ("dns" as const), value })),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  return { certificate: `${made.toString("pem")}\n`, key: pem(privateKey) };
}

const pem = (key: ReturnType<typeof createPrivateKey>) =>
  key.export({ type: "pkcs8", format: "pem" }) as string;

/**
 * NameConstraints (RFC 5280, 4.2.1.10): these host names only. All IP addresses are excluded, unless the server has one:
 * BoringSSL, and with it our own client, refuses every address of an authority that is limited to some.
 */
function constraintsFor(names: readonly string[]): Buffer {
  const [dns, address] = [0x82, 0x87];
  const subtree = (tag: number, name: Buffer) => derElement(0x30, derElement(tag, name));
  const hosts = names.filter((name) => !isIP(name));
  // Without a host name, one that does not exist: an empty list would permit every name.
  const permitted = (hosts.length > 0 ? hosts : ["invalid"]).map((name) => subtree(dns, Buffer.from(name)));
  const excluded =
    hosts.length === names.length ? [4, 16].map((bytes) => subtree(address, Buffer.alloc(bytes * 2))) : [];
  return derElement(
    0x30,
    Buffer.concat([
      derElement(0xa0, Buffer.concat(permitted)),
      ...(excluded.length > 0 ? [derElement(0xa1, Buffer.concat(excluded))] : []),
    ]),
  );
}
