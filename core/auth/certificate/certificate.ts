import { createHash, X509Certificate } from "node:crypto";
import { and, eq, gt, inArray, isNull, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { lockName } from "../../../drizzle/lock_name.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { authorityKey, clientCertificate, token } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { Conflict, Forbidden, NotFound } from "../../../platform/errors.ts";
import { audit } from "../../audit.ts";
import { clientAuthority, type SigningAuthority, signingAuthority } from "../../authority/authority.ts";
import { type Actor, type Context, tokenOf } from "../../context.ts";
import { endTokens } from "../../end_tokens.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { holdIssuerSession } from "../session/issuer_session.ts";

// Terminology. A client certificate of ours authenticates its user over mutual TLS, wherever an access token would. It
// belongs to a certificate sign-in: a row of `token` for which no token is signed. That row has the user and the end, and
// revoking it revokes all certificates of the sign-in; leases and streams treat it like the row of a token.
//
// A certificate is valid for a day at most, which limits the use of a stolen one, and it authenticates its own renewal.
// Renewals never go beyond the end of the sign-in: without it, a user who has left would renew forever. Groups are those of
// the user's latest sign-in of any kind.
//
// Only an access token of the last minutes can start a certificate sign-in, because it lasts much longer than the token:
// otherwise an hour with a stolen token would become a week.

/** Seconds after sign-in within which its token may ask for a certificate. */
export const freshTokenSeconds = 300;
/** Seconds that one certificate is valid, at most. */
export const longestCertificateSeconds = 24 * 3600;
/** Valid certificates of one user: more than anybody has machines, fewer than a loop creates. */
export const mostCertificates = 50;
/** The clocks of servers may be behind. */
const backdatedSeconds = 60;

export type ClientCertificate = Omit<typeof clientCertificate.$inferSelect, "jti" | "authorityKeyId"> & {
  user: string;
  /** When its sign-in ends, and with it the renewals. */
  signInExpiresAt: Date;
  revokedAt: Date | null;
};

export interface IssuedCertificate extends ClientCertificate {
  /** PEM. */
  certificate: string;
  /** The certificate of the authority, PEM. */
  chain: string;
}

/** SHA-256 of a certificate's DER encoding in base64url, as in `x5t#S256` (RFC 8705). */
export const thumbprintOf = (der: Uint8Array): string => createHash("sha256").update(der).digest("base64url");

/**
 * Signs a certificate for the key of a certificate signing request (PEM), whose subject and extensions do not count. An
 * actor with a certificate gets the next one of the same sign-in; an actor with an access token starts a sign-in.
 *
 * @throws InvalidInput for the request
 * @throws Forbidden if the access token is not from the last minutes, or SVC_DOMAIN is not the user's
 * @throws Conflict if clients cannot use certificates at this server, or the user has too many
 * @throws ConfigurationError
 */
export async function issueClientCertificate(
  context: Context,
  actor: Actor,
  csr: string,
  address: string,
): Promise<IssuedCertificate> {
  const { db, clock, config } = context;
  if (!config.mtlsUrl)
    throw new Conflict("This server does not accept client certificates (--mtls-port or SVC_MTLS_URL)");
  const { parseCertificateRequest, permitsEmail, signX509Certificate } =
    await import("../../../platform/x509/certificate.ts");
  const publicKey = await parseCertificateRequest(csr);
  const signer = await signingAuthority(context, "x509", clientAuthority);
  if (!permitsEmail(signer.public, actor.user))
    throw new Forbidden("Client certificates are only for users of SVC_DOMAIN");
  const now = clock.now();
  return db.transaction(async (tx) => {
    await assertRoom(tx, actor.user, now);
    const signIn = await signInOf(tx, context, actor, now);
    const last = Math.min(after(now, longestCertificateSeconds).getTime(), signIn.expiresAt.getTime());
    // Certificates have whole seconds.
    const expiresAt = new Date(Math.floor(last / 1000) * 1000);
    const { certificate, serial } = await signX509Certificate(
      {
        publicKey,
        commonName: actor.user,
        email: actor.user,
        notBefore: after(now, -backdatedSeconds),
        notAfter: expiresAt,
        crlUrl: `${config.publicUrl}/access/x509/${clientAuthority}/crl/${signer.id}`,
      },
      signer,
    );
    await assertTrusted(tx, signer);
    const sha256 = thumbprintOf(new X509Certificate(certificate).raw);
    const [row] = await tx
      .insert(clientCertificate)
      .values({ sha256, serial, jti: signIn.jti, authorityKeyId: signer.id, createdAt: now, expiresAt })
      .returning();
    await audit(tx, {
      at: now,
      actor: actor.user,
      address,
      subject: serial,
      data: { jti: signIn.jti },
      action: actor.certificate ? "certificate.renewed" : "certificate.issued",
    });
    const { jti: _, authorityKeyId: __, ...made } = row!;
    const of = { user: actor.user, signInExpiresAt: signIn.expiresAt, revokedAt: null };
    return { ...made, ...of, certificate, chain: signer.public };
  });
}

/** @throws Conflict */
async function assertRoom(tx: Transaction, user: string, now: Date): Promise<void> {
  await lockName(tx, `svc certificates ${user}`);
  const [valid] = await tx
    .select({ count: sql<number>`count(*)::int` })
    .from(clientCertificate)
    .innerJoin(token, eq(token.jti, clientCertificate.jti))
    .where(and(eq(token.userName, user), isNull(token.revokedAt), gt(clientCertificate.expiresAt, now)));
  if (valid!.count >= mostCertificates)
    throw new Conflict(
      `${user} has ${valid!.count} valid certificates, the maximum: svc certificates revoke, or wait for them to expire`,
    );
}

/** The certificate sign-in of the actor: a new one, unless a certificate authenticated. @throws Forbidden */
async function signInOf(tx: Transaction, { config }: Context, actor: Actor, now: Date) {
  // Before the token, as in `endIssuerSessions`. That then waits, and ends the new sign-in as well.
  const jti = tokenOf(actor);
  await holdIssuerSession(tx, sql`(select issuer_session_id from token where jti = ${jti})`);
  const [known] = await tx.select().from(token).where(eq(token.jti, jti)).for("share");
  if (!known || known.revokedAt) throw new Forbidden("The sign-in has ended: svc login --certificate");
  if (actor.certificate) return known;
  if (known.issuedAt < after(now, -freshTokenSeconds))
    throw new Forbidden("Only a new sign-in can ask for a certificate: svc login --certificate");
  const [made] = await tx
    .insert(token)
    .values({
      jti: crypto.randomUUID(),
      userName: known.userName,
      groups: known.groups,
      // The token's time, so that this row is not newer than a sign-in in between.
      issuedAt: known.issuedAt,
      expiresAt: after(known.issuedAt, config.certificateLifetime),
      issuerSessionId: known.issuerSessionId,
    })
    .returning();
  return made!;
}

/** Locks the key: a revocation waits until the certificate is stored, and then ends its sign-in as well. @throws Conflict */
async function assertTrusted(tx: Transaction, { id }: SigningAuthority): Promise<void> {
  const { revokedAt } = authorityKey;
  const [key] = await tx.select({ revokedAt }).from(authorityKey).where(eq(authorityKey.id, id)).for("share");
  if (!key || key.revokedAt) throw new Conflict("The authority has a new key: try again");
}

export type FoundCertificate =
  { actor: Actor; expiresAt: Date } | { refused: "unknown" | "revoked" | "expired" };

/**
 * The user of a certificate of ours, by its SHA-256 in base64url. Only the TLS handshake shows that the client has the
 * key. Asked for each request, because a resumed TLS session keeps its certificate after it was revoked or has expired.
 */
export async function findClientCertificate(
  { db, clock, config }: Context,
  sha256: string,
): Promise<FoundCertificate> {
  const [row] = await certificateBySha256(db).execute({ sha256 });
  if (!row) return { refused: "unknown" };
  if (row.revokedAt || row.keyRevokedAt) return { refused: "revoked" };
  const now = clock.now();
  if (row.expiresAt <= now || row.signInExpiresAt <= now) return { refused: "expired" };
  return {
    actor: {
      kind: "user",
      user: row.user,
      groups: row.groups,
      admin: row.groups.includes(config.adminGroup),
      tokenId: row.jti,
      expiresAt: row.expiresAt,
      certificate: { sha256 },
    },
    expiresAt: row.expiresAt,
  };
}

/** The current groups of the user of a row of `token`. */
export const latestGroups = sql<string[]>`(
  select groups from token as latest where latest.user_name = ${token.userName} order by issued_at desc limit 1)`;

const certificateBySha256 = preparedQuery((db) =>
  db
    .select({
      jti: token.jti,
      user: token.userName,
      groups: latestGroups,
      revokedAt: token.revokedAt,
      signInExpiresAt: token.expiresAt,
      expiresAt: clientCertificate.expiresAt,
      keyRevokedAt: authorityKey.revokedAt,
    })
    .from(clientCertificate)
    .innerJoin(token, eq(token.jti, clientCertificate.jti))
    .innerJoin(authorityKey, eq(authorityKey.id, clientCertificate.authorityKeyId))
    .where(eq(clientCertificate.sha256, sql.placeholder("sha256")))
    .prepare("client_certificate"),
);

/** The current groups of the users of these certificate sign-ins, by the id of the sign-in. */
export async function currentGroups(
  db: Context["db"],
  signIns: readonly string[],
): Promise<Map<string, string[]>> {
  if (signIns.length === 0) return new Map();
  const rows = await db
    .select({ jti: token.jti, groups: latestGroups })
    .from(token)
    .where(inArray(token.jti, [...signIns]));
  return new Map(rows.map(({ jti, groups }) => [jti, groups]));
}

const certificates: List<"created_at"> = {
  name: "certificates",
  id: clientCertificate.id,
  sorts: { created_at: { by: clientCertificate.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

const columns = {
  id: clientCertificate.id,
  sha256: clientCertificate.sha256,
  serial: clientCertificate.serial,
  createdAt: clientCertificate.createdAt,
  expiresAt: clientCertificate.expiresAt,
  user: token.userName,
  signInExpiresAt: token.expiresAt,
  revokedAt: token.revokedAt,
};

const ofActor = ({ admin, user }: Actor): SQL | undefined => (admin ? undefined : eq(token.userName, user));

/** One page of the actor's certificates, newest first; an admin's list has everybody's. @throws InvalidInput */
export async function listClientCertificates(
  { db, clock }: Context,
  actor: Actor,
  { user, valid, ...query }: ListQuery & { user?: string; valid?: boolean },
): Promise<{ items: ClientCertificate[]; next_cursor: string | null }> {
  const page = startPage(certificates, query, { user, valid: valid ? 1 : undefined });
  const wanted = and(
    ofActor(actor),
    user === undefined ? undefined : eq(token.userName, user),
    valid ? and(isNull(token.revokedAt), gt(clientCertificate.expiresAt, clock.now())) : undefined,
  );
  const rows = await db
    .select({ item: columns, key: page.key })
    .from(clientCertificate)
    .innerJoin(token, eq(token.jti, clientCertificate.jti))
    .where(page.within(wanted))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows);
}

/**
 * Revokes a certificate with all others of its sign-in, so that a renewal made by a thief ends too, and the access tokens that
 * are bound to them. Repeating it is not an error.
 *
 * @throws NotFound also for someone else's, unless the actor is an admin
 */
export async function revokeClientCertificate(
  { db, clock }: Context,
  actor: Actor,
  serial: string,
  address: string,
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    const [found] = await tx
      .select({ jti: token.jti, revokedAt: token.revokedAt })
      .from(clientCertificate)
      .innerJoin(token, eq(token.jti, clientCertificate.jti))
      .where(and(eq(clientCertificate.serial, serial), ofActor(actor)))
      .for("update", { of: token });
    if (!found) throw new NotFound("There is no such certificate");
    if (found.revokedAt) return;
    await endTokens(tx, sql`select ${found.jti}::uuid`, at);
    const data = { jti: found.jti };
    await audit(tx, { at, actor: actor.user, action: "certificate.revoked", address, subject: serial, data });
  });
}
