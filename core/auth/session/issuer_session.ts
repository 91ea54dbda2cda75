import { and, eq, gt, inArray, isNotNull, isNull, or, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { lockName } from "../../../drizzle/lock_name.ts";
import { auditLog, challenge, issuerSession, session } from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import { sha256Hex } from "../../../platform/secret.ts";
import { audit } from "../../audit.ts";
import type { Context } from "../../context.ts";
import { endTokens, isOfOrganisation } from "../../end_tokens.ts";
import { anonymous, type IssuerSignIn, lockSignIns } from "./session.ts";

/** What a verified logout token says: it names a user, one of their sessions at the issuer, or both. */
export interface Logout extends Partial<IssuerSignIn> {
  issuer: string;
  jti: string;
}

/**
 * Ends the sign-ins that a logout token names, with everything that came from them (OpenID Connect Back-Channel Logout, 2.7).
 * Without `sid`, these are all of the user. With it, they are those of that session, and those of which the issuer named
 * no session.
 *
 * @throws InvalidInput if the token was used before
 */
export async function endAtLogout({ db, clock }: Context, logout: Logout, address: string): Promise<void> {
  const { issuer, subject, sid } = logout;
  const at = clock.now();
  const jti = sha256Hex(`${issuer} ${logout.jti}`);
  const isOf = (of: typeof issuerSession) =>
    and(
      eq(of.issuer, issuer),
      subject === undefined ? undefined : eq(of.subject, subject),
      sid === undefined ? undefined : or(eq(of.sid, sid), subject === undefined ? undefined : isNull(of.sid)),
    );
  await db.transaction(async (tx) => {
    const received = "logout.received";
    const used = and(eq(auditLog.subject, jti), eq(auditLog.action, received));
    if ((await tx.$count(auditLog, used)) > 0)
      throw new InvalidInput("logout_token", "The logout token was used before");
    const ended = await endIssuerSessions(tx, isOf(issuerSession), { at, because: "logout", address });
    await audit(tx, { at, actor: "system", action: received, address, subject: jti, data: { ended } });
  });
}

/**
 * Ends sign-ins at the issuer: browser sessions, approvals that no terminal has collected, tokens and certificates. Streams
 * and leases end with their tokens.
 *
 * @returns how many ended
 */
export async function endIssuerSessions(
  tx: Transaction,
  which: SQL | undefined,
  {
    at,
    because,
    address,
  }: { at: Date; because: "logout" | "refused" | "revoked" | "signed_out"; address?: string },
): Promise<number> {
  // First, because `holdIssuerSession` waits for it.
  const ended = await tx
    .update(issuerSession)
    .set({ endedAt: at })
    .where(and(isNull(issuerSession.endedAt), which))
    .returning({ id: issuerSession.id, userName: issuerSession.userName });
  if (ended.length === 0) return 0;
  const ids = ended.map(({ id }) => id);
  // Before tokens: a terminal that collects now has either done so, or finds its request expired.
  await tx
    .update(challenge)
    .set({ expiresAt: sql`least(${challenge.expiresAt}, ${at.toISOString()}::timestamptz)` })
    .where(
      and(
        inArray(challenge.issuerSessionId, ids),
        isNotNull(challenge.approvedAt),
        isNull(challenge.collectedAt),
      ),
    );
  await endTokens(tx, sql`select jti from token where ${inArray(sql`issuer_session_id`, ids)}`, at);
  await tx.update(session).set(anonymous(at)).where(inArray(session.issuerSessionId, ids));
  for (const { id, userName } of ended)
    await audit(tx, {
      at,
      actor: "system",
      action: "sign_in.ended",
      address,
      subject: id,
      data: { user: userName, because },
    });
  return ended.length;
}

/**
 * Ends all sign-ins of a user: browser sessions, terminals that wait for an approval, tokens and certificates of ours. Streams
 * and leases end with their tokens.
 */
export async function signOutEverywhere(
  { db, clock }: Context,
  { user, by = user, address }: { user: string; by?: string; address: string },
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    // Until a certificate that is being issued is stored, which refers to no sign-in at the issuer then.
    await lockName(tx, `svc certificates ${user}`);
    // And until an approval is stored, for the same reason.
    await lockSignIns(tx, user);
    await endIssuerSessions(tx, eq(issuerSession.userName, user), { at, because: "signed_out", address });
    // The rest has no sign-in at the issuer, behind a proxy that signs people in; in the same order.
    await tx
      .update(challenge)
      .set({ expiresAt: at })
      .where(
        and(
          eq(challenge.userName, user),
          isNull(challenge.collectedAt),
          isNull(challenge.deniedAt),
          gt(challenge.expiresAt, at),
        ),
      );
    // Without the certificates of an organisation, whose ids have version 8: a new sign-in would not bring them back.
    const isOurs = sql`not ${isOfOrganisation(sql`jti`)}`;
    await endTokens(tx, sql`select jti from token where user_name = ${user} and ${isOurs}`, at);
    await tx.update(session).set(anonymous(at)).where(eq(session.userName, user));
    const data = { everywhere: true, ...(by === user ? {} : { user }) };
    await audit(tx, { at, actor: by, action: "session.signed_out", address, data });
  });
}

/**
 * Keeps a sign-in at the issuer from ending until the transaction does, so that what the transaction creates ends as well.
 *
 * @param id an expression
 * @returns whether it has not ended
 */
export async function holdIssuerSession(tx: Transaction, id: SQL): Promise<boolean> {
  const [held] = await tx
    .select({ endedAt: issuerSession.endedAt })
    .from(issuerSession)
    .where(eq(issuerSession.id, id))
    .for("share");
  return held?.endedAt === null;
}
