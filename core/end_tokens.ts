import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { Transaction } from "../drizzle/client.ts";
import { afterCommit } from "../drizzle/connection/notify.ts";
import { forgetTokens } from "./known_tokens.ts";
import { wakeWorkers } from "./wake.ts";

/** Whether an id of `token` stands for a certificate of an organisation: it has version 8 (`auth/certificate/identify.ts`). */
export const isOfOrganisation = (jti: SQLWrapper): SQL => sql`substr(${jti}::text, 15, 1) = '8'`;

/**
 * Revokes access tokens and certificate sign-ins, with the access tokens that are bound to the certificates of these. Their
 * streams end within seconds, and so do the leases that they have requested.
 *
 * @param ids a query of ids of `token`
 */
export async function endTokens(tx: Transaction, ids: SQL, at: Date): Promise<void> {
  await tx.execute(sql`
    with ended (jti) as (${ids})
    update token set revoked_at = ${at.toISOString()}::timestamptz
    where revoked_at is null and jti in (
      select jti from ended
      union all
      select bound.jti from token bound
      join client_certificate on client_certificate.sha256 = bound.certificate_sha256
      where client_certificate.jti in (select jti from ended)
      union all
      select bound.jti from token bound join token organisation using (certificate_sha256)
      where organisation.jti in (select jti from ended) and ${isOfOrganisation(sql`organisation.jti`)})`);
  wakeWorkers(tx);
  afterCommit(tx, forgetTokens);
}
