import { and, eq, gt, inArray, isNotNull, like, sql } from "drizzle-orm";
import { accessLease, clientCertificate, token } from "../../drizzle/schema/index.ts";
import type { Context } from "../context.ts";

/** The handle of a lease with a certificate: the signing key and, unless it is the lease's id, the serial number. */
export function certificateHandle(keyId: number, serial = ""): string {
  return `${prefix}${keyId}/${serial}`;
}

const prefix = "authority/";

export interface RevokedCertificate {
  leaseId: number;
  keyId: number;
  serial: string;
  revokedAt: Date;
}

/** The certificates of leases that ended early and have not expired yet. */
export async function revokedCertificates({ db }: Pick<Context, "db">): Promise<RevokedCertificate[]> {
  const rows = await db
    .select({
      leaseId: accessLease.id,
      handle: accessLease.handle,
      at: accessLease.finishedAt,
      dueAt: accessLease.dueAt,
    })
    .from(accessLease)
    .where(
      and(
        like(accessLease.handle, `${prefix}%`),
        // clock_timestamp() is volatile, so PostgreSQL would read every lease instead of using the index.
        gt(accessLease.expiresAt, sql`statement_timestamp()`),
        inArray(accessLease.state, ["Revoking", "Revoked", "Failed"]),
      ),
    )
    .orderBy(accessLease.id);
  return rows.map(({ leaseId, handle, at, dueAt }) => {
    const [keyId, serial = ""] = handle!.slice(prefix.length).split("/");
    return { leaseId, keyId: Number(keyId), serial, revokedAt: (at ?? dueAt)! };
  });
}

/** The client certificates that were revoked and have not expired yet. */
export async function revokedClientCertificates({
  db,
}: Pick<Context, "db">): Promise<Omit<RevokedCertificate, "leaseId">[]> {
  const rows = await db
    .select({
      keyId: clientCertificate.authorityKeyId,
      serial: clientCertificate.serial,
      revokedAt: token.revokedAt,
    })
    .from(clientCertificate)
    .innerJoin(token, eq(token.jti, clientCertificate.jti))
    .where(and(isNotNull(token.revokedAt), gt(clientCertificate.expiresAt, sql`statement_timestamp()`)))
    .orderBy(clientCertificate.id);
  return rows.map(({ revokedAt, ...row }) => ({ ...row, revokedAt: revokedAt! }));
}
