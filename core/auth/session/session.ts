import { createHmac } from "node:crypto";
import { and, eq, getTableColumns, gt, gte, isNotNull, isNull, ne, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { afterCommit } from "../../../drizzle/connection/notify.ts";
import { errorCode, withoutQuery } from "../../../drizzle/database_error.ts";
import { lockName } from "../../../drizzle/lock_name.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { challenge, individual, issuerSession, session, token } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { seal, unseal } from "../../../platform/sealed.ts";
import { looksLikeSecret, newSecret, sameText, sha256 } from "../../../platform/secret.ts";
import { audit } from "../../audit.ts";
import type { Config } from "../../config.ts";
import type { Context, Identity } from "../../context.ts";
import { forgetTokens } from "../../known_tokens.ts";
import { wakeWorkers } from "../../wake.ts";

export type Session = typeof session.$inferSelect & {
  /** The time zone that its user has chosen. */
  timeZone?: string | null;
  /** When its issuer last confirmed the sign-in, if it can be asked again. */
  refreshedAt?: Date | null;
};
export type SignedInSession = Session & { userName: string };

/** Long enough to find one's password. A session without a user is worth no more. */
const anonymousSeconds = 3600;

/** Creates a session for a browser without a user. `id` goes into the cookie. Only its hash is stored. */
export async function createSession({ db, clock }: Context): Promise<{ session: Session; id: string }> {
  const id = newSecret();
  const now = clock.now();
  const [row] = await db
    .insert(session)
    .values({ idHash: sha256(id), createdAt: now, expiresAt: after(now, anonymousSeconds) })
    .returning();
  return { session: row!, id };
}

export async function findSession({ db, clock }: Context, id: string): Promise<Session | undefined> {
  if (!looksLikeSecret(id)) return undefined;
  const [found] = await sessionQuery(db).execute({ idHash: sha256(id), now: clock.now().toISOString() });
  return found;
}

/** With what each page needs to know of its reader. */
const sessionQuery = preparedQuery((db) =>
  db
    .select({
      ...getTableColumns(session),
      timeZone: individual.timeZone,
      refreshedAt: issuerSession.refreshedAt,
    })
    .from(session)
    .leftJoin(individual, eq(individual.email, session.userName))
    .leftJoin(
      issuerSession,
      and(eq(issuerSession.id, session.issuerSessionId), isNotNull(issuerSession.refreshToken)),
    )
    .where(and(eq(session.idHash, sql.placeholder("idHash")), gt(session.expiresAt, sql.placeholder("now"))))
    .prepare("session"),
);

export function isSignedIn(session: Session): session is SignedInSession {
  return session.userName !== null;
}

/** The values of a session without a user. */
export const anonymous = (at: Date) => ({
  userName: null,
  groups: [],
  signedInAt: null,
  issuerSessionId: null,
  expiresAt: after(at, anonymousSeconds),
});

/** A sign-in as the OpenID Connect issuer knows it, by the claims of the ID token. */
export interface IssuerSignIn {
  issuer: string;
  subject: string;
  sid?: string;
  refreshToken?: string;
}

const sealOf = (secret: string, name: string) => ({ secret, purpose: "refresh token", name });

/** Without SVC_KEY_SECRET, it is not kept. */
export const sealRefreshToken = ({ keySecret }: Pick<Config, "keySecret">, id: string, token?: string) =>
  token !== undefined && keySecret ? seal(token, sealOf(keySecret, id)) : undefined;

/** @throws ConfigurationError */
export const unsealRefreshToken = ({ keySecret }: Pick<Config, "keySecret">, id: string, token: Uint8Array) =>
  unseal(token, sealOf(keySecret ?? "", id), "a refresh token");

/**
 * Signs a person in to a session under a new id, so that a planted id is useless (session fixation). What the session
 * had opened stays with it: the tables that refer to it follow the id.
 *
 * @returns the new id, for the cookie; undefined when the session has ended, or was signed in by another tab, meanwhile
 */
export async function signInSession(
  { db, clock, config }: Context,
  request: { session: Session; identity: Identity; address: string; issuerSignIn?: IssuerSignIn },
): Promise<string | undefined> {
  const { identity, address, issuerSignIn } = request;
  const id = newSecret();
  const at = clock.now();
  return db.transaction(async (tx) => {
    const issuerSessionId = issuerSignIn ? crypto.randomUUID() : null;
    if (issuerSignIn && issuerSessionId)
      await tx.insert(issuerSession).values({
        ...issuerSignIn,
        id: issuerSessionId,
        userName: identity.user,
        createdAt: at,
        refreshToken: sealRefreshToken(config, issuerSessionId, issuerSignIn.refreshToken),
        refreshedAt: at,
      });
    // Before this session, in the order of the other changes of a user's sign-ins.
    if (issuerSignIn) await setGroups(tx, identity);
    else await lockSignIns(tx, identity.user);
    const changed = await tx
      .update(session)
      .set({
        idHash: sha256(id),
        userName: identity.user,
        groups: identity.groups,
        signedInAt: at,
        issuerSessionId,
        expiresAt: after(at, config.sessionLifetime),
      })
      .where(and(eq(session.idHash, request.session.idHash), gt(session.expiresAt, at)))
      .returning({ createdAt: session.createdAt });
    if (changed.length === 0) return undefined;
    await audit(tx, { at, actor: identity.user, action: "session.signed_in", address });
    return id;
  });
}

/**
 * Replaces the groups of all sign-ins of a user at the issuer, in terminals and browsers: what it said last counts everywhere.
 * An approval that no terminal has collected gets them as well.
 *
 * @param asked the sign-in that the issuer was asked about, and when. What it has said about another one since then is newer
 * @returns whether they are replaced
 */
export async function setGroups(
  tx: Transaction,
  { user, groups }: Pick<Identity, "user" | "groups">,
  asked?: { id: string; at: Date },
): Promise<boolean> {
  await lockSignIns(tx, user);
  const { id, userName, refreshedAt } = issuerSession;
  if (asked) {
    const isNewer = and(eq(userName, user), gte(refreshedAt, asked.at), ne(id, asked.id));
    if ((await tx.$count(issuerSession, isNewer)) > 0) return false;
    await tx.update(issuerSession).set({ refreshedAt: asked.at }).where(eq(id, asked.id));
  }
  type Table = typeof challenge | typeof token | typeof session;
  const isOutdated = ({ userName, groups: known, issuerSessionId }: Table) =>
    and(eq(userName, user), isNotNull(issuerSessionId), ne(known, groups));
  // In the order of `endIssuerSessions`: a terminal that collects now has either done so, or gets these groups.
  await tx
    .update(challenge)
    .set({ groups })
    .where(and(isOutdated(challenge), isNull(challenge.collectedAt)));
  const changed = await tx
    .update(token)
    .set({ groups })
    .where(isOutdated(token))
    .returning({ jti: token.jti });
  await tx.update(session).set({ groups }).where(isOutdated(session));
  if (changed.length > 0) {
    wakeWorkers(tx);
    afterCommit(tx, forgetTokens);
  }
  return true;
}

/**
 * Until the transaction ends, nobody else changes or ends the user's sign-ins here, or approves a terminal with one: what it
 * stores is seen by the next one.
 */
export async function lockSignIns(tx: Transaction, user: string): Promise<void> {
  await lockName(tx, `svc sign-ins ${user}`);
}

/** Whether a row could not refer to its session, which has ended, or was signed in by another tab, meanwhile. */
export function isSessionGone(error: unknown): boolean {
  return errorCode(withoutQuery(error)) === "23503";
}

/** Forgets the user, and keeps what the browser has opened for the next person. */
export async function signOutSession(
  { db, clock }: Context,
  request: { session: SignedInSession; address: string },
): Promise<void> {
  const { session: ended, address } = request;
  const at = clock.now();
  await db.transaction(async (tx) => {
    const isOfUser = and(eq(session.idHash, ended.idHash), eq(session.userName, ended.userName));
    const changed = await tx
      .update(session)
      .set(anonymous(at))
      .where(isOfUser)
      .returning({ createdAt: session.createdAt });
    if (changed.length === 0) return;
    await audit(tx, { at, actor: ended.userName, action: "session.signed_out", address });
  });
}

/**
 * The token of one of our forms. Only somebody who knows the session id can compute it, and it is valid for one form
 * only.
 */
export function csrfToken(sessionId: string, form: string): string {
  return createHmac("sha256", sessionId).update(`csrf ${form}`).digest("base64url");
}

export function isCsrfToken(token: string, sessionId: string, form: string): boolean {
  return sameText(token, csrfToken(sessionId, form));
}
