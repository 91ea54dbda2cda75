import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigurationError } from "../../../platform/errors.ts";
import { whyUnreadable } from "../../../platform/unreadable.ts";
import type { VerifiedChain } from "./chain.ts";

const blocks = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

interface Known {
  authorities: readonly X509Certificate[];
  /** Chains that these authorities have verified, by their hash. */
  verified: Map<string, VerifiedChain>;
}

/** The certificate authorities of an organisation, in the file of SVC_MTLS_CA_CERTS. */
export class OrganisationAuthorities {
  #current: Known = { authorities: [], verified: new Map() };

  /** @throws ConfigurationError */
  constructor(private readonly file: string | undefined) {
    this.reload();
  }

  get current(): Known {
    return this.#current;
  }

  /** Reads the file again. @throws ConfigurationError; the previous authorities stay in use */
  reload(): void {
    if (this.file === undefined) return;
    this.#current = { authorities: readAuthorities(this.file), verified: new Map() };
  }
}

function readAuthorities(file: string): X509Certificate[] {
  const fault = (why: string, cause?: unknown) =>
    new ConfigurationError([`SVC_MTLS_CA_CERTS: ${file} ${why}`], { cause });
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (cause) {
    throw fault(`cannot be read: ${whyUnreadable(cause)}`, cause);
  }
  const found = pem.match(blocks) ?? [];
  if (found.length === 0) throw fault("contains no certificate in PEM");
  return found.map((block, at) => {
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(block);
    } catch (cause) {
      throw fault(`contains a certificate that cannot be read (number ${at + 1})`, cause);
    }
    if (!certificate.ca) throw fault(`contains a certificate that is no authority (number ${at + 1})`);
    return certificate;
  });
}
