import { X509Certificate } from "node:crypto";
import type { X509Certificate as Parsed } from "@peculiar/x509";
import { canonicalSerial, loadX509, type OrganisationAuthorities, signerId } from "./authorities.ts";
import { readElement, readElements, SEQUENCE } from "./der.ts";
import { type ClaimedNames, permitsNames } from "./name_constraints.ts";
import { type CertificateReason, RefusedCertificate } from "./refusal.ts";

// The path from a client's certificate to an authority (RFC 5280, 6.1). Nothing here depends on the TLS library, because a
// proxy may have ended TLS, and because a resumed session is as old as its handshake.

const largestCertificate = 16 * 1024;
const largestChain = 64 * 1024;
/** Certificates from the client's to that of the authority, both included. */
const longestPath = 5;
const mostSent = 10;
/** Limits the work that a client can cause by certificates of equal names. */
const mostSignatures = 20;
const leastRsaBits = 2048;
/** Larger ones only cost time. */
const mostRsaBits = 8192;
const curves = ["prime256v1", "secp384r1", "secp521r1"];
const strongHashes = ["SHA-256", "SHA-384", "SHA-512"];

const oid = {
  keyUsage: "2.5.29.15",
  subjectAlternativeName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  nameConstraints: "2.5.29.30",
  policies: "2.5.29.32",
  extendedKeyUsage: "2.5.29.37",
  anyExtendedKeyUsage: "2.5.29.37.0",
};
const understood: readonly string[] = [
  oid.keyUsage,
  oid.subjectAlternativeName,
  oid.basicConstraints,
  oid.nameConstraints,
  // Any policy will do.
  oid.policies,
  oid.extendedKeyUsage,
];

/** A certificate, also parsed (slowly, when accessed) by a library that shows what Node does not. */
interface Certificate {
  node: X509Certificate;
  parsed: Parsed;
}

/** What a certificate says about its holder, and when its whole chain is valid. */
export interface VerifiedChain {
  /**
   * SHA-256 of the signed part, in base64url. The hash of the whole would not do: anybody can change an ECDSA signature
   * into another valid one, and so a revoked certificate into an unknown one.
   */
  id: string;
  /** The `signerId` of the authority that signed it. */
  signer: string;
  emails: readonly string[];
  uris: readonly string[];
  commonNames: readonly string[];
  units: readonly string[];
  organisations: readonly string[];
  notBefore: Date;
  notAfter: Date;
  /** When the certificate itself expires. */
  expiresAt: Date;
}

interface Requirements {
  /** The authorities must be valid then. */
  at: Date;
  /** The OID that the extended key usage must contain. */
  usage: string;
  /** Of common names that stand for users there, if they do: name constraints for e-mail addresses count then. */
  domain?: string;
}

/**
 * Verifies a client's certificate, the first of `chain` (DER), with the others as intermediates. The caller compares the
 * times of the result with its clock each time. When they are over, another chain may lead to a renewed authority.
 *
 * @throws RefusedCertificate
 */
export async function verifyChain(
  chain: readonly Uint8Array[],
  trusted: Trusted,
  requirements: Requirements,
): Promise<VerifiedChain> {
  const x509 = await loadX509();
  try {
    return verify(x509, chain, trusted, requirements);
  } catch (cause) {
    // Both libraries parse most of a certificate only when it is accessed, and throw then.
    throw cause instanceof RefusedCertificate ? cause : new RefusedCertificate("unreadable", { cause });
  }
}

type Trusted = Pick<OrganisationAuthorities["current"], "authorities" | "revoked">;
type X509 = typeof import("@peculiar/x509");

function verify(
  x509: X509,
  chain: readonly Uint8Array[],
  { authorities, revoked }: Trusted,
  { at, usage, domain }: Requirements,
): VerifiedChain {
  const sizes = chain.map(({ length }) => length);
  if (Math.max(...sizes) > largestCertificate || sizes.reduce((sum, size) => sum + size, 0) > largestChain)
    throw new RefusedCertificate("too large");
  if (chain.length > mostSent) throw new RefusedCertificate("chain too long");
  const [leaf, ...sent] = readAll(x509, chain);
  const anchors = readAll(
    x509,
    authorities.map(({ raw }) => new Uint8Array(raw)),
  );
  // Signatures first: for a stranger's certificate of 16 kB, `parsed` takes 100 ms, for each request of its connection.
  let names: ClaimedNames | undefined;
  const path = pathFrom(leaf!, sent, anchors, (authority, below) => {
    names ??= namesOf(leaf!, domain);
    requireAuthority(authority, below, usage);
    requireValid(authority, at);
    requireNames(authority, names);
  });
  requireStrength(leaf!);
  requireClient(leaf!, usage);
  for (const [place, { parsed }] of path.slice(0, -1).entries()) {
    const serials = revoked.get(signerId(path[place + 1]!.node));
    // The encoded bytes, as in a revocation list: Node.js writes negative ones with a sign.
    if (serials?.has(canonicalSerial(parsed.serialNumber))) throw new RefusedCertificate("revoked");
  }
  const of = (field: string) => leaf!.parsed.subjectName.getField(field);
  const times = path.map(({ parsed }) => parsed);
  return {
    emails: names!.emails,
    uris: names!.uris,
    commonNames: of("CN"),
    units: of("OU"),
    organisations: of("O"),
    id: signedPartOf(chain[0]!),
    signer: signerId(path[1]!.node),
    expiresAt: leaf!.parsed.notAfter,
    notBefore: new Date(Math.max(...times.map(({ notBefore }) => notBefore.getTime()))),
    notAfter: new Date(Math.min(...times.map(({ notAfter }) => notAfter.getTime()))),
  };
}

const readAll = (x509: X509, chain: readonly Uint8Array[]): Certificate[] =>
  chain.map((der) => {
    let parsed: Parsed | undefined;
    return {
      node: new X509Certificate(der),
      get parsed() {
        parsed ??= new x509.X509Certificate(new Uint8Array(der));
        return parsed;
      },
    };
  });

function signedPartOf(der: Uint8Array): string {
  const [signed] = readElements(readElement(der, SEQUENCE));
  return new Bun.CryptoHasher("sha256").update(signed!.content).digest("base64url");
}

/** Refuses keys and hashes that can be broken, and unknown critical extensions. */
function requireStrength({ node, parsed }: Certificate): void {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = readKey(node);
  const bits = details?.modulusLength ?? 0;
  const strong =
    type === "rsa"
      ? bits >= leastRsaBits && bits <= mostRsaBits
      : type === "ec"
        ? curves.includes(details?.namedCurve ?? "")
        : type === "ed25519";
  if (!strong) throw new RefusedCertificate("weak key");
  const { name, hash } = parsed.signatureAlgorithm as { name: string; hash?: { name: string } };
  // Ed25519 includes its hash. The library names no hash for algorithms that it does not know, such as those with SHA-224.
  if (name !== "Ed25519" && !strongHashes.includes(hash?.name ?? ""))
    throw new RefusedCertificate("weak signature");
  const unknown = parsed.extensions.some(({ critical, type }) => critical && !understood.includes(type));
  if (unknown) throw new RefusedCertificate("unknown critical extension");
}

function readKey(node: X509Certificate) {
  try {
    return node.publicKey;
  } catch (cause) {
    throw new RefusedCertificate("weak key", { cause });
  }
}

function requireClient({ node, parsed }: Certificate, usage: string): void {
  if (node.ca) throw new RefusedCertificate("is an authority");
  const keyUsages = keyUsagesOf(parsed);
  if (keyUsages !== undefined && !(keyUsages & digitalSignature))
    throw new RefusedCertificate("wrong key usage");
  if (!extendedUsagesOf(parsed)?.includes(usage)) throw new RefusedCertificate("wrong extended key usage");
}

const digitalSignature = 1;
const keyCertSign = 32;

function keyUsagesOf(parsed: Parsed): number | undefined {
  return (parsed.getExtension(oid.keyUsage) as { usages?: number } | null)?.usages;
}

function extendedUsagesOf(parsed: Parsed): readonly string[] | undefined {
  return (parsed.getExtension(oid.extendedKeyUsage) as { usages?: string[] } | null)?.usages;
}

/**
 * The path to an anchor, depth first.
 * @param requireAbove throws RefusedCertificate if a certificate may not be above the others
 * @throws RefusedCertificate with the reason nearest to success
 */
function pathFrom(
  leaf: Certificate,
  sent: readonly Certificate[],
  anchors: readonly Certificate[],
  requireAbove: (authority: Certificate, below: readonly Certificate[]) => void,
): Certificate[] {
  let signatures = 0;
  let reason: CertificateReason = leaf.node.checkIssued(leaf.node) ? "self-signed" : "unknown authority";
  const verifies = (below: Certificate, above: Certificate) => {
    if (!below.node.checkIssued(above.node)) return false;
    signatures += 1;
    if (signatures > mostSignatures) throw new RefusedCertificate("chain too long");
    return below.node.verify(above.node.publicKey);
  };
  /** A path of valid signatures, if each certificate may be above the others. */
  const accepted = (path: Certificate[]): Certificate[] | undefined => {
    try {
      for (const [place, above] of path.entries()) {
        // An anchor is trusted regardless of its signature.
        if (place > 0 && place < path.length - 1) requireStrength(above);
        if (place > 0) requireAbove(above, path.slice(0, place));
      }
      return path;
    } catch (error) {
      if (!(error instanceof RefusedCertificate)) throw error;
      reason = error.reason;
      return undefined;
    }
  };
  const extend = (path: readonly Certificate[]): Certificate[] | undefined => {
    const last = path.at(-1)!;
    if (path.length >= longestPath) {
      reason = "chain too long";
      return undefined;
    }
    for (const [candidates, trusted] of [
      [anchors, true],
      [sent, false],
    ] as const) {
      for (const above of candidates) {
        if (path.some(({ node }) => node.raw.equals(above.node.raw)) || !verifies(last, above)) continue;
        const longer = [...path, above];
        const found = trusted ? accepted(longer) : extend(longer);
        if (found) return found;
      }
    }
    return undefined;
  };
  const found = extend([leaf]);
  if (!found) throw new RefusedCertificate(reason);
  return found;
}

/** Whether a certificate may sign the last one of `below`. */
function requireAuthority({ node, parsed }: Certificate, below: readonly Certificate[], usage: string): void {
  const invalid = new RefusedCertificate("invalid authority");
  const keyUsages = keyUsagesOf(parsed);
  if (!node.ca || (keyUsages !== undefined && !(keyUsages & keyCertSign))) throw invalid;
  const usages = extendedUsagesOf(parsed);
  if (usages && !usages.includes(usage) && !usages.includes(oid.anyExtendedKeyUsage)) throw invalid;
  const { pathLength } = (parsed.getExtension(oid.basicConstraints) ?? {}) as { pathLength?: number };
  // Those that are signed by themselves do not count (RFC 5280, 4.2.1.9).
  const between = below.slice(1).filter((one) => one.node.subject !== one.node.issuer).length;
  if (pathLength !== undefined && between > pathLength) throw new RefusedCertificate("chain too long");
}

function requireValid({ parsed: { notBefore, notAfter } }: Certificate, at: Date): void {
  if (at < notBefore) throw new RefusedCertificate("not yet valid");
  if (at >= notAfter) throw new RefusedCertificate("expired");
}

function requireNames({ parsed }: Certificate, names: ClaimedNames): void {
  const constraints = parsed.getExtension(oid.nameConstraints);
  if (!constraints) return;
  let permitted: boolean;
  try {
    permitted = permitsNames(new Uint8Array(constraints.value), names);
  } catch (cause) {
    throw new RefusedCertificate("invalid authority", { cause });
  }
  if (!permitted) throw new RefusedCertificate("outside of the authority's names");
}

function namesOf({ parsed }: Certificate, domain: string | undefined): ClaimedNames {
  const extension = parsed.getExtension(oid.subjectAlternativeName) as {
    names?: { items: readonly { type: string; value: string }[] };
  } | null;
  const items = extension?.names?.items ?? [];
  const ofType = (type: string) => items.filter((item) => item.type === type).map(({ value }) => value);
  const { subjectName } = parsed;
  // A common name that is an e-mail address, or becomes one, and the e-mail address of the subject are claims like one.
  const claimed = [...subjectName.getField("CN"), ...subjectName.getField("E")].flatMap((name) =>
    name.includes("@") ? name : domain ? `${name}@${domain}` : [],
  );
  return {
    emails: ofType("email"),
    claimedEmails: claimed,
    uris: ofType("url"),
    hosts: ofType("dns"),
    hasAddresses: ofType("ip").length > 0,
    subject: new Uint8Array(subjectName.toArrayBuffer()),
  };
}
