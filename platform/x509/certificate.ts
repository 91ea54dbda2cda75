import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { domainToASCII } from "node:url";
import type { JsonName } from "@peculiar/x509";
import { after } from "../clock.ts";
import { InvalidInput } from "../errors.ts";
import { derElement, integer, integerOf, SEQUENCE } from "./der.ts";

// X.509 certificates (RFC 5280): authorities that can sign only client certificates, and those certificates. All keys are
// P-256, and all signatures use ECDSA with SHA-256.

// The library needs reflect-metadata first. In the executable, the bundler would reorder static imports.
await import("reflect-metadata");
const x509 = await import("@peculiar/x509");

const keyAlgorithm = { name: "ECDSA", namedCurve: "P-256" } as const;
const signing = { name: "ECDSA", hash: "SHA-256" } as const;
const authorityYears = 10;
const daySeconds = 24 * 3600;
/** See RFC 5280, appendix A.1. */
const longestCommonName = 64;
const subjectAlternativeName = "2.5.29.17";
const nameConstraints = "2.5.29.30";
/** The object identifier 1.3.6.1.5.5.7.8.9, encoded. */
const smtpUtf8Mailbox = Buffer.from("06082b06010505070809", "hex");

/** The key and the certificate of an authority. */
export interface X509Signer {
  /** PEM. */
  public: string;
  privateKey: KeyObject;
}

/**
 * Creates an authority that can sign only certificates for TLS clients, not for servers or other authorities. With
 * `domain`, it cannot sign for e-mail addresses or URIs of other domains.
 */
export async function createX509Authority(
  name: string,
  at: Date,
  domain: string | undefined,
): Promise<X509Signer> {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const serialNumber = newSerial();
  // Every key has a different subject, so that verifiers find the CRL of the key that signed a certificate.
  const subject: JsonName = [{ CN: [`svc ${name} ${serialNumber.slice(0, 8)}`] }];
  if (domain) subject.push({ O: [domain] });
  const [signingKey, verificationKey] = await Promise.all([
    privateCryptoKey(privateKey),
    publicCryptoKey(publicKey),
  ]);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber,
    subject,
    issuer: subject,
    signingKey,
    publicKey: verificationKey,
    signingAlgorithm: signing,
    notBefore: after(at, -daySeconds),
    notAfter: after(at, authorityYears * 365 * daySeconds),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
      new x509.Extension(
        nameConstraints,
        true,
        new Uint8Array(constraintsFor(domain && asciiDomain(domain))),
      ),
      await x509.SubjectKeyIdentifierExtension.create(verificationKey),
    ],
  });
  return { public: `${certificate.toString("pem")}\n`, privateKey };
}

export interface X509CertificateFacts {
  /** SubjectPublicKeyInfo in DER. */
  publicKey: Buffer;
  commonName: string;
  email: string;
  uri?: string;
  notBefore: Date;
  notAfter: Date;
  /** The address of the revocation list. */
  crlUrl: string;
}

/** Signs a client certificate. Its serial number is 126 random bits in lower-case hexadecimal. */
export async function signX509Certificate(
  facts: X509CertificateFacts,
  signer: X509Signer,
): Promise<{ certificate: string; serial: string }> {
  const { publicKey, commonName, email, uri, notBefore, notAfter, crlUrl } = facts;
  const authority = new x509.X509Certificate(signer.public);
  const [signingKey, clientKey] = await Promise.all([
    privateCryptoKey(signer.privateKey),
    crypto.subtle.importKey("spki", new Uint8Array(publicKey), keyAlgorithm, true, ["verify"]),
  ]);
  const serial = newSerial();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial,
    // As an object, because the library replaces escapes in a text, and decodes what follows a # as hexadecimal DER. Cut by
    // characters, because half of a surrogate pair cannot be encoded.
    subject: new x509.Name([{ CN: [{ utf8String: [...commonName].slice(0, longestCommonName).join("") }] }]),
    issuer: authority.subjectName,
    notBefore,
    notAfter,
    signingKey,
    publicKey: clientKey,
    signingAlgorithm: signing,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
      new x509.Extension(subjectAlternativeName, false, new Uint8Array(alternativeNames(email, uri))),
      new x509.CRLDistributionPointsExtension([crlUrl]),
      await x509.SubjectKeyIdentifierExtension.create(clientKey),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  return { certificate: `${certificate.toString("pem")}\n`, serial };
}

/**
 * GeneralNames (RFC 5280, 4.2.1.6). An e-mail address that is not ASCII is a SmtpUTF8Mailbox (RFC 9598). The library would
 * write the low byte of each character, and so name another user.
 */
function alternativeNames(email: string, uri: string | undefined): Buffer {
  const at = email.lastIndexOf("@") + 1;
  const address = Buffer.from(email.slice(0, at) + asciiDomain(email.slice(at)));
  const mailbox = address.every((byte) => byte < 0x80)
    ? derElement(0x81, address)
    : derElement(0xa0, Buffer.concat([smtpUtf8Mailbox, derElement(0xa0, derElement(0x0c, address))]));
  const names = uri === undefined ? [mailbox] : [mailbox, derElement(0x86, Buffer.from(uri))];
  return derElement(SEQUENCE, Buffer.concat(names));
}

/** @throws InvalidInput */
function asciiDomain(domain: string): string {
  if (/^[\x21-\x7e]+$/.test(domain)) return domain;
  const ascii = domainToASCII(domain);
  if (ascii === "") throw new InvalidInput("user", "The domain of the user name is not a valid host name");
  return ascii;
}

export interface RevokedSerial {
  serial: string;
  revokedAt: Date;
}

/** Signs the revocation list of one authority key, in DER. `number` must increase from one list to the next. */
export async function signX509RevocationList(
  {
    revoked,
    at,
    nextUpdate,
    number,
  }: { revoked: readonly RevokedSerial[]; at: Date; nextUpdate: Date; number: number },
  signer: X509Signer,
): Promise<Buffer> {
  const authority = new x509.X509Certificate(signer.public);
  const extensions = [
    await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
    new x509.Extension("2.5.29.20", false, new Uint8Array(integer(number))),
  ].map(({ rawData }) => new Uint8Array(rawData));
  // Encoded here, because the library takes seconds for 10,000 entries. RFC 5280, 5.1.
  const entries = revoked.map(({ serial, revokedAt }) =>
    derElement(SEQUENCE, Buffer.concat([integerOf(serial), timeOf(revokedAt)])),
  );
  const parts = [
    integer(1),
    ecdsaWithSha256,
    new Uint8Array(authority.subjectName.toArrayBuffer()),
    timeOf(at),
    timeOf(nextUpdate),
    // An empty list would be invalid.
    ...(entries.length > 0 ? [derElement(SEQUENCE, Buffer.concat(entries))] : []),
    derElement(0xa0, derElement(SEQUENCE, Buffer.concat(extensions))),
  ];
  const signed = derElement(SEQUENCE, Buffer.concat(parts));
  const signature = derElement(
    0x03,
    Buffer.concat([Buffer.of(0), sign("sha256", signed, signer.privateKey)]),
  );
  return derElement(SEQUENCE, Buffer.concat([signed, ecdsaWithSha256, signature]));
}

/** The AlgorithmIdentifier of RFC 5758, 3.2. */
const ecdsaWithSha256 = Buffer.from("300a06082a8648ce3d040302", "hex");

/** UTCTime until 2049, then GeneralizedTime (RFC 5280, 4.1.2.5). */
function timeOf(at: Date): Buffer {
  const text = `${at.toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  const isShort = at.getUTCFullYear() < 2050;
  return derElement(isShort ? 0x17 : 0x18, Buffer.from(isShort ? text.slice(2) : text));
}

/** Parses a P-256 key in PEM (SubjectPublicKeyInfo) and returns its DER. @throws InvalidInput for any other key */
export function parseP256PublicKey(pem: string): Buffer {
  const refused = (why: string) => new InvalidInput("public_key", `Invalid public key: ${why}`);
  const [, base64] =
    /^\s*-----BEGIN PUBLIC KEY-----(\s[A-Za-z0-9+/=\s]{1,500})-----END PUBLIC KEY-----\s*$/.exec(pem) ?? [];
  if (base64 === undefined) throw refused("it is not in PEM (BEGIN PUBLIC KEY)");
  return assertP256(Buffer.from(base64, "base64"), refused);
}

function assertP256(der: Buffer, refused: (why: string) => InvalidInput): Buffer {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: der, format: "der", type: "spki" });
  } catch {
    throw refused("it cannot be read");
  }
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType !== "ec" || curve !== "prime256v1") throw refused("it must be a P-256 key");
  if (!key.export({ type: "spki", format: "der" }).equals(der))
    throw refused("it is not encoded canonically");
  return der;
}

/** In characters. A request with a P-256 key and a few extensions has fewer than a thousand. */
const longestCertificateRequest = 4000;

/**
 * Parses a certificate signing request (RFC 2986) in PEM, and verifies that its sender has the private key. Returns the
 * public key in DER. Ignores everything else in the request: the server chooses the subject and the extensions.
 *
 * @throws InvalidInput for an invalid request, or a key that is not P-256
 */
export async function parseCertificateRequest(pem: string): Promise<Buffer> {
  const refused = (why: string) => new InvalidInput("csr", `Invalid certificate request: ${why}`);
  // White space at one place of the pattern only: at two, it would take quadratic time.
  const [, base64] =
    /^\s*-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----(\s[A-Za-z0-9+/=\s]+)-----END (?:NEW )?CERTIFICATE REQUEST-----\s*$/.exec(
      pem,
    ) ?? [];
  if (base64 === undefined || pem.length > longestCertificateRequest)
    throw refused("it is not a single request in PEM (BEGIN CERTIFICATE REQUEST)");
  let request: InstanceType<typeof x509.Pkcs10CertificateRequest>;
  try {
    request = new x509.Pkcs10CertificateRequest(Buffer.from(base64, "base64"));
  } catch {
    throw refused("it cannot be read");
  }
  const key = assertP256(Buffer.from(request.publicKey.rawData), (why) => refused(`invalid key: ${why}`));
  // The library throws for unknown signature algorithms.
  if (!(await request.verify().catch(() => false))) throw refused("its signature does not match its key");
  return key;
}

/** Whether the name constraints of an authority permit this e-mail address. */
export function permitsEmail(authority: string, email: string): boolean {
  const domain = email.slice(email.lastIndexOf("@") + 1);
  return permits(authority, [domain, asciiDomain(domain)]);
}

/** Whether they permit this URI, by its host. */
export function permitsUri(authority: string, uri: string): boolean {
  const [, host = ""] = /^[^:]*:\/\/([^/]*)/.exec(uri.toLowerCase()) ?? [];
  const labels = host.split(".");
  return permits(
    authority,
    labels.map((_, at) => labels.slice(at).join(".")),
  );
}

/** Whether an authority is for one of these domains, or for every domain. */
function permits(authority: string, domains: readonly string[]): boolean {
  const constraints = new x509.X509Certificate(authority).getExtension(nameConstraints);
  if (!constraints) return true;
  const value = Buffer.from(constraints.value);
  return [undefined, ...domains].some((one) => value.equals(constraintsFor(one)));
}

/** Creates a random serial number. Its first byte makes the number positive and its length constant. */
export function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return bytes.toString("hex");
}

export const privateCryptoKey = (key: KeyObject) =>
  crypto.subtle.importKey(
    "pkcs8",
    new Uint8Array(key.export({ type: "pkcs8", format: "der" })),
    keyAlgorithm,
    false,
    ["sign"],
  );
export const publicCryptoKey = (key: KeyObject) =>
  crypto.subtle.importKey(
    "spki",
    new Uint8Array(key.export({ type: "spki", format: "der" })),
    keyAlgorithm,
    true,
    ["verify"],
  );

/** NameConstraints (RFC 5280, 4.2.1.10), which the library does not support. Excludes all host names and IP addresses. */
function constraintsFor(domain: string | undefined): Buffer {
  const subtree = (tag: number, name: Uint8Array) => derElement(SEQUENCE, derElement(0x80 | tag, name));
  const [email, host, uri, address] = [1, 2, 6, 7] as const;
  const permitted = domain
    ? [
        subtree(email, Buffer.from(domain)),
        ...[domain, `.${domain}`].map((one) => subtree(uri, Buffer.from(one))),
      ]
    : [];
  const excluded = [
    subtree(host, Buffer.of()),
    subtree(address, Buffer.alloc(8)),
    subtree(address, Buffer.alloc(32)),
  ];
  return derElement(
    SEQUENCE,
    Buffer.concat([
      ...(permitted.length > 0 ? [derElement(0xa0, Buffer.concat(permitted))] : []),
      derElement(0xa1, Buffer.concat(excluded)),
    ]),
  );
}
