import { and, eq, isNotNull, isNull, lte, or, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { issuerSession, session, token } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { Unauthenticated, Unavailable } from "../../../platform/errors.ts";
import { type Actor, type Context, type Identity, tokenOf } from "../../context.ts";
import { endIssuerSessions } from "./issuer_session.ts";
import { type Session, sealRefreshToken, setGroups, unsealRefreshToken } from "./session.ts";

/**
 * Asks the issuer about a sign-in.
 *
 * @returns the user as the issuer now describes them; undefined if it only confirms the sign-in
 * @throws Unauthenticated when the issuer refuses the refresh token, or no longer identifies the user
 * @throws Unavailable when it does not answer
 */
export type AskIssuer = (about: {
  refreshToken: string;
  /** The claim `sub` of the sign-in. */
  subject: string;
  /** Stores the refresh token of the answer, because the issuer may accept each one only once. */
  replaced: (refreshToken: string) => Promise<void>;
}) => Promise<Identity | undefined>;

/** Several leases are renewed at once, and clients retry. */
const freshSeconds = 60;
/** Of a browser, whose pages load often. */
const freshPageSeconds = 300;
/** Longer than the issuer may take. */
const claimSeconds = 60;
/** How long an issuer is not asked again that did not answer. Longer than clients that gave up wait until they retry. */
const pauseSeconds = 600;
/** How long the last answer of the issuer counts while it is down: as long as a certificate is valid. */
const longestOutageSeconds = 24 * 3600;

/** Whether the groups of a browser's session are due. */
export function isRefreshDue({ clock }: Pick<Context, "clock">, { refreshedAt }: Session): boolean {
  return refreshedAt instanceof Date && refreshedAt <= after(clock.now(), -freshPageSeconds);
}

/**
 * Refreshes the groups of the actor's sign-in at the issuer, before something is issued or renewed that outlives the request,
 * and while somebody uses the pages. Does nothing without a refresh token: the groups are those of the sign-in then.
 *
 * @returns the actor with the current groups
 * @throws Unauthenticated when the issuer has ended the sign-in. Everything that came from it then ends here, too
 * @throws Unavailable when the issuer has not answered for a day
 */
export async function refreshSignIn(context: Context, actor: Actor, ask: AskIssuer): Promise<Actor> {
  const { db, clock, config, log } = context;
  const at = clock.now();
  const { sessionKey } = actor;
  const ofActor = and(
    eq(
      issuerSession.id,
      sessionKey
        ? sql`(select issuer_session_id from session where id_hash = decode(${sessionKey}, 'hex'))`
        : sql`(select issuer_session_id from token where jti = ${tokenOf(actor)})`,
    ),
    isNotNull(issuerSession.refreshToken),
    lte(issuerSession.refreshedAt, after(at, -(sessionKey ? freshPageSeconds : freshSeconds))),
  );
  const [found] = await db.select().from(issuerSession).where(ofActor);
  if (!found?.refreshToken) return actor;
  const { id, subject, userName, refreshedAt } = found;
  const requireRecent = (cause?: unknown) => {
    if (refreshedAt! > after(at, -longestOutageSeconds)) return;
    throw new Unavailable("The sign-in provider has not answered for a day: try again later", { cause });
  };
  // One at a time, because an issuer may end a sign-in when it sees the same refresh token twice.
  const [claimed] = await db
    .update(issuerSession)
    .set({ refreshUntil: after(at, claimSeconds) })
    .where(and(ofActor, or(isNull(issuerSession.refreshUntil), lte(issuerSession.refreshUntil, at))))
    .returning();
  if (!claimed?.refreshToken) {
    requireRecent();
    return actor;
  }
  const store = (values: Partial<typeof issuerSession.$inferInsert>) =>
    db.update(issuerSession).set(values).where(eq(issuerSession.id, id));
  let paused: Date | null = null;
  try {
    const identity = await ask({
      refreshToken: unsealRefreshToken(config, id, claimed.refreshToken),
      subject,
      replaced: async (next) => {
        await store({ refreshToken: sealRefreshToken(config, id, next) });
      },
    });
    if (identity && identity.user !== userName)
      throw new Unauthenticated("Your user name at the sign-in provider has changed: svc login");
    if (!identity) {
      await store({ refreshedAt: at });
      return actor;
    }
    const groups = await db.transaction(async (tx) =>
      (await setGroups(tx, identity, { id, at })) ? identity.groups : storedGroups(tx, actor),
    );
    return { ...actor, groups, admin: groups.includes(config.adminGroup) };
  } catch (error) {
    if (error instanceof Unauthenticated)
      await db.transaction((tx) =>
        endIssuerSessions(tx, eq(issuerSession.id, id), { at, because: "refused" }),
      );
    if (!(error instanceof Unavailable)) throw error;
    requireRecent(error);
    paused = after(at, pauseSeconds);
    log.warn(
      { err: error, user: userName },
      "the groups of a sign-in could not be refreshed; the last ones are used",
    );
    return actor;
  } finally {
    await store({ refreshUntil: paused });
  }
}

/** The groups of the newest sign-in, which all others of the user have as well. */
async function storedGroups(tx: Transaction, actor: Actor): Promise<string[]> {
  const { sessionKey } = actor;
  const [stored] = sessionKey
    ? await tx
        .select({ groups: session.groups })
        .from(session)
        .where(eq(session.idHash, Buffer.from(sessionKey, "hex")))
    : await tx
        .select({ groups: token.groups })
        .from(token)
        .where(eq(token.jti, tokenOf(actor)));
  return stored?.groups ?? actor.groups;
}
