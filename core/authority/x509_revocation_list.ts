import { createHash } from "node:crypto";
import { after } from "../../platform/clock.ts";
import type { Context } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { trustedAuthorities } from "./authority.ts";
import { revokedCertificates, revokedClientCertificates } from "./revoked.ts";

/** Allows for servers whose clocks are slow. */
const backdatedSeconds = 300;
/** After this time, a server without a newer list refuses every certificate. */
const validSeconds = 48 * 3600;
/** Lists are signed again at least this often, even without new revocations. */
const renewedSeconds = 6 * 3600;

export interface X509RevocationLists {
  /** In DER, by the id of the key. */
  lists: ReadonlyMap<number, Buffer>;
  /** All lists in PEM. */
  pem: string;
  /** Changes when a revocation is added, or when the lists are due to be signed again. */
  digest: string;
}

/**
 * Builds the revocation lists of an X.509 authority, one for each trusted key. Returns undefined if it has no key.
 *
 * @throws ConfigurationError if SVC_KEY_SECRET cannot decrypt the keys
 */
export async function x509RevocationLists(
  context: Pick<Context, "db" | "config">,
  name: string,
): Promise<X509RevocationLists | undefined> {
  const keys = await trustedAuthorities(context, "x509", name);
  if (keys.length === 0) return undefined;
  const [ofLeases, ofClients, now, { signX509RevocationList }] = await Promise.all([
    revokedCertificates(context),
    revokedClientCertificates(context),
    databaseNow(context.db),
    import("../../platform/x509/certificate.ts"),
  ]);
  const certificates = [...ofLeases, ...ofClients];
  const seconds = Math.floor(now.getTime() / 1000);
  const at = after(now, -backdatedSeconds);
  const hash = createHash("sha256").update(String(Math.floor(seconds / renewedSeconds)));
  const lists = new Map<number, Buffer>();
  for (const key of keys) {
    const revoked = certificates.filter(({ keyId }) => keyId === key.id);
    hash.update(JSON.stringify([key.id, revoked.map(({ serial }) => serial)]));
    // Two lists of one second may differ, and then need different numbers (RFC 5280, 5.2.3).
    const facts = { revoked, at, nextUpdate: after(now, validSeconds), number: now.getTime() };
    lists.set(key.id, await signX509RevocationList(facts, key));
  }
  return { lists, pem: [...lists.values()].map(pemOf).join(""), digest: hash.digest("base64url") };
}

function pemOf(der: Buffer): string {
  const lines = der
    .toString("base64")
    .match(/.{1,64}/g)!
    .join("\n");
  return `-----BEGIN X509 CRL-----\n${lines}\n-----END X509 CRL-----\n`;
}
