import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigurationError } from "../errors.ts";
import { whyUnreadable } from "../unreadable.ts";
import type { VerifiedChain } from "./chain.ts";
import { readRevocationList } from "./revocation_list.ts";

const blocks = /-----BEGIN (CERTIFICATE|X509 CRL)-----.+?-----END \1-----/gs;

interface Known {
  authorities: readonly X509Certificate[];
  /** Serial numbers in lower-case hexadecimal, by `signerId` of the authority that revoked them. */
  revoked: ReadonlyMap<string, ReadonlySet<string>>;
  /** Chains that these authorities have verified, by their hash. */
  verified: Map<string, VerifiedChain>;
}

/** The certificate authorities of an organisation, and their revocation lists, in the file of SVC_MTLS_CA_CERTS. */
export class OrganisationAuthorities {
  #current: Known = { authorities: [], revoked: new Map(), verified: new Map() };

  private constructor(private readonly file: string | undefined) {}

  /** @throws ConfigurationError */
  static async open(file: string | undefined): Promise<OrganisationAuthorities> {
    const authorities = new OrganisationAuthorities(file);
    await authorities.reload();
    return authorities;
  }

  get current(): Known {
    return this.#current;
  }

  /**
   * Reads the file again.
   * @returns whether there is one
   * @throws ConfigurationError; the previous authorities stay in use
   */
  async reload(): Promise<boolean> {
    if (this.file === undefined) return false;
    this.#current = { ...(await readAuthorities(this.file)), verified: new Map() };
    return true;
  }
}

/** Identifies an authority by its name and key: it may have several certificates. */
export function signerId({ subject, publicKey }: X509Certificate): string {
  const key = publicKey.export({ type: "spki", format: "der" });
  return new Bun.CryptoHasher("sha256").update(`${subject}\n`).update(key).digest("base64url");
}

/** Slow to load, and few processes need it. It needs reflect-metadata first. */
export async function loadX509(): Promise<typeof import("@peculiar/x509")> {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

async function readAuthorities(file: string): Promise<Omit<Known, "verified">> {
  const fault = (why: string, cause?: unknown) =>
    new ConfigurationError([`SVC_MTLS_CA_CERTS: ${file} ${why}`], { cause });
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (cause) {
    throw fault(`cannot be read: ${whyUnreadable(cause)}`, cause);
  }
  const found = pem.match(blocks) ?? [];
  const certificates = found.filter((block) => block.startsWith("-----BEGIN CERTIFICATE"));
  if (certificates.length === 0) throw fault("contains no certificate in PEM");
  // A truncated revocation list, or one in DER, would be ignored, and its certificates accepted.
  if (found.length < pem.split("-----BEGIN ").length - 1 || pem.includes("\0"))
    throw fault("contains something else than complete certificates and revocation lists in PEM");
  const x509 = await loadX509();
  const authorities = certificates.map((block, at) => {
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(block);
      // Parsed only when accessed. Otherwise every client's certificate would fail.
      void new x509.X509Certificate(new Uint8Array(certificate.raw)).extensions;
    } catch (cause) {
      throw fault(`contains a certificate that cannot be read (number ${at + 1})`, cause);
    }
    if (!certificate.ca)
      throw fault(`contains a certificate that is not a CA certificate (number ${at + 1})`);
    return certificate;
  });
  const revoked = new Map<string, Set<string>>();
  const lists = found.filter((block) => !certificates.includes(block));
  for (const [at, block] of lists.entries()) {
    const list = await readList(block, authorities).catch((cause: unknown) => {
      throw fault(`contains a revocation list that cannot be read (number ${at + 1})`, cause);
    });
    if (!list) throw fault(`contains a revocation list of none of its authorities (number ${at + 1})`);
    revoked.set(list.signer, (revoked.get(list.signer) ?? new Set()).union(list.serials));
  }
  return { authorities, revoked };
}

/** The serial numbers of a revocation list. Undefined if no authority has signed it. */
async function readList(
  pem: string,
  authorities: readonly X509Certificate[],
): Promise<{ signer: string; serials: Set<string> } | undefined> {
  const x509 = await loadX509();
  const list = readRevocationList(Buffer.from(pem.replaceAll(/-----.+?-----|\s/g, ""), "base64"));
  const issuer = new x509.Name(new Uint8Array(list.issuer)).toString();
  for (const authority of authorities) {
    const parsed = new x509.X509Certificate(new Uint8Array(authority.raw));
    if (parsed.subject !== issuer || !list.isSignedBy(authority.publicKey)) continue;
    return { signer: signerId(authority), serials: new Set(list.serials.map(canonicalSerial)) };
  }
  return undefined;
}

/** Libraries write serial numbers with and without leading zeros, in upper and lower case. */
export function canonicalSerial(hex: string): string {
  return hex.toLowerCase().replace(/^0+(?=.)/, "");
}
