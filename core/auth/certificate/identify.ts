import { X509Certificate } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { token } from "../../../drizzle/schema/index.ts";
import { type OrganisationAuthorities, signerId } from "../../../platform/x509/authorities.ts";
import { type VerifiedChain, verifyChain } from "../../../platform/x509/chain.ts";
import { RefusedCertificate } from "../../../platform/x509/refusal.ts";
import { allKeys, clientAuthority } from "../../authority/authority.ts";
import type { Config } from "../../config.ts";
import type { Actor, Context } from "../../context.ts";
import { canonicalUserName } from "../user/name.ts";
import { findClientCertificate, thumbprintOf } from "./certificate.ts";

// A client certificate is checked on each request. Its chain never changes, so the result of verifying it is cached for a
// while; times, revocation and groups are read each time.
//
// Each certificate of an organisation gets a row of `token` when it is first seen, with an id derived from the certificate.
// Leases depend on that row as on any token's, and revoking it refuses the certificate here, whatever its authority says.

const mostRemembered = 1000;

export interface CertificateContext extends Context {
  organisation: OrganisationAuthorities;
}

/**
 * Returns the user of a client certificate: the first of `chain` (DER), whose key the client has proved to hold.
 * @throws RefusedCertificate
 */
export async function identifyCertificate(
  context: CertificateContext,
  chain: readonly Uint8Array[],
): Promise<Actor> {
  const { clock, config } = context;
  const { verified: remembered } = context.organisation.current;
  const id = idOf(chain);
  const now = clock.now();
  let verified = remembered.get(id);
  // A certificate that was not ours when first seen never will be: its row is stored before the certificate is sent.
  if (!verified) {
    // Ours need no chain, because nobody else has a certificate with that hash.
    const found = await findClientCertificate(context, thumbprintOf(chain[0]!));
    if ("actor" in found) return found.actor;
    if (found.refused !== "unknown") throw new RefusedCertificate(found.refused);
    verified = await verify(context, chain, id);
  } else if (now >= verified.notAfter && now < verified.expiresAt) {
    // An authority above it has expired, but may have a newer certificate.
    verified = await verify(context, chain, id);
  }
  if (now < verified.notBefore) throw new RefusedCertificate("not yet valid");
  if (now >= verified.notAfter) throw new RefusedCertificate("expired");
  const user = userOf(verified, config);
  const groups = groupsOf(verified, user, config.mtlsGroups);
  const tokenId = await signInOf(context, {
    user,
    groups,
    verified,
    certificateSha256: thumbprintOf(chain[0]!),
  });
  return {
    kind: "user",
    user,
    groups,
    admin: groups.includes(config.adminGroup),
    tokenId,
    expiresAt: verified.notAfter,
  };
}

/** Ids of the chains of open connections, which a connection's requests share. */
const ids = new WeakMap<readonly Uint8Array[], string>();

/** Identifies all certificates of a chain. */
function idOf(chain: readonly Uint8Array[]): string {
  let id = ids.get(chain);
  if (id === undefined) {
    const hasher = new Bun.CryptoHasher("sha256");
    for (const der of chain) hasher.update(`${der.length} `).update(der);
    id = hasher.digest("base64url");
    ids.set(chain, id);
  }
  return id;
}

async function verify(
  context: CertificateContext,
  chain: readonly Uint8Array[],
  id: string,
): Promise<VerifiedChain> {
  const { organisation, config, clock } = context;
  // Authorities may be reloaded meanwhile, and forget what the old ones have verified.
  const { current } = organisation;
  const domain = config.mtlsIdentity === "cn" ? config.domain : undefined;
  const verified = await verifyChain(chain, current, { at: clock.now(), usage: config.mtlsUsage, domain });
  // If our own authority is in that file, it would accept revoked certificates of ours with another valid signature.
  const ours = await allKeys(context, "x509", clientAuthority);
  if (ours.some((key) => signerId(new X509Certificate(key.public)) === verified.signer))
    throw new RefusedCertificate("revoked");
  const { verified: remembered } = current;
  const [oldest] = remembered.keys();
  if (remembered.size >= mostRemembered && oldest !== undefined) remembered.delete(oldest);
  remembered.set(id, verified);
  return verified;
}

/** @throws RefusedCertificate unless there is exactly one valid name */
export function userOf(
  { emails, uris, commonNames }: Pick<VerifiedChain, "emails" | "uris" | "commonNames">,
  config: Pick<Config, "mtlsIdentity" | "mtlsUriPrefix" | "domain">,
): string {
  const prefix = config.mtlsUriPrefix ?? "";
  const names = {
    email: emails,
    uri: uris.filter((uri) => uri.startsWith(prefix)).map((uri) => uri.slice(prefix.length)),
    cn: commonNames,
  }[config.mtlsIdentity];
  const [name, ...others] = names;
  if (name === undefined) throw new RefusedCertificate("no user name");
  // Choosing one would be a guess, and it might be another user's.
  if (others.length > 0) throw new RefusedCertificate("several user names");
  try {
    return canonicalUserName(name, config.mtlsIdentity === "email" ? undefined : config.domain);
  } catch (cause) {
    throw new RefusedCertificate("invalid user name", { cause });
  }
}

/** The groups that the rules of SVC_MTLS_GROUPS give to the holder of a certificate. */
export function groupsOf(
  { units, organisations, uris }: Pick<VerifiedChain, "units" | "organisations" | "uris">,
  user: string,
  rules = "",
): string[] {
  const groups = rules.split(",").flatMap((rule) => {
    const [, kind, value = "", group = ""] = /^\s*(ou|o|uri|user):([^=]+)=(.+?)\s*$/.exec(rule) ?? [];
    const applies =
      kind === "ou"
        ? units.includes(value)
        : kind === "o"
          ? organisations.includes(value)
          : kind === "uri"
            ? uris.some((uri) => uri.startsWith(value))
            : kind === "user" && value.normalize("NFC").toLowerCase() === user;
    return applies ? [group.normalize("NFC")] : [];
  });
  return [...new Set(groups)];
}

interface SignIn {
  user: string;
  groups: string[];
  verified: VerifiedChain;
  certificateSha256: string;
}

/** The id of the certificate's row of `token`. @throws RefusedCertificate if it is revoked */
async function signInOf(
  { db }: Context,
  { user, groups, verified, certificateSha256 }: SignIn,
): Promise<string> {
  const jti = idFrom(verified.id);
  const [known] = await tokenById(db).execute({ jti });
  if (known?.revokedAt) throw new RefusedCertificate("revoked");
  const same = known && known.userName === user && known.groups.join("\n") === groups.join("\n");
  if (same) return jti;
  const { notBefore, expiresAt } = verified;
  await db
    .insert(token)
    // Issued when the certificate was: a later sign-in is the newer source of the user's groups. The row stays as long as
    // the certificate may be used, even if an authority above it expires earlier: it may be replaced.
    .values({ jti, userName: user, groups, issuedAt: notBefore, expiresAt, certificateSha256 })
    // After a change of the settings.
    .onConflictDoUpdate({
      target: token.jti,
      set: { userName: user, groups },
      setWhere: sql`token.revoked_at is null`,
    });
  return jti;
}

const tokenById = preparedQuery((db) =>
  db
    .select({ userName: token.userName, groups: token.groups, revokedAt: token.revokedAt })
    .from(token)
    .where(eq(token.jti, sql.placeholder("jti")))
    .prepare("token_of_certificate"),
);

/** A UUID of version 8 (RFC 9562, 5.8) from the first bits of a hash. */
function idFrom(sha256: string): string {
  const bytes = Buffer.from(sha256, "base64url").subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
