import { createHash } from "node:crypto";
import { encodeKrl } from "../../platform/ssh/krl.ts";
import type { Context } from "../context.ts";
import { allKeys, sshBlobOf } from "./authority.ts";
import { revokedCertificates } from "./revoked.ts";

export interface RevocationList {
  bytes: Buffer;
  /** Changes only when the set of revoked certificates and keys changes. */
  digest: string;
}

/**
 * Builds the KRL of an SSH authority: the certificates of leases that ended early, and revoked keys of the authority.
 * Returns undefined if the authority has no key.
 */
export async function sshRevocationList(
  context: Pick<Context, "db" | "clock">,
  name: string,
): Promise<RevocationList | undefined> {
  const keys = await allKeys(context, "ssh", name);
  if (keys.length === 0) return undefined;
  const certificates = await revokedCertificates(context);
  const revoked = keys.map((key) => ({
    blob: sshBlobOf(key),
    serials: certificates.filter(({ keyId }) => keyId === key.id).map(({ leaseId }) => leaseId),
  }));
  const revokedKeys = keys.filter(({ revokedAt }) => revokedAt !== null).map(sshBlobOf);
  const at = context.clock.now();
  const comment = `svc ${name}`;
  const list = { revoked, keys: revokedKeys, comment };
  return {
    bytes: encodeKrl({ ...list, version: Math.floor(at.getTime() / 1000), at }),
    digest: createHash("sha256")
      .update(encodeKrl({ ...list, version: 0, at: new Date(0) }))
      .digest("base64url"),
  };
}
