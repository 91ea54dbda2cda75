import { and, desc, eq, gt, isNull, or, TransactionRollbackError } from "drizzle-orm";
import { challenge } from "../../../drizzle/schema/index.ts";
import { addressScope, isInScope } from "../../../platform/address.ts";
import { looksLikeSecret, sha256 } from "../../../platform/secret.ts";
import type { Config } from "../../config.ts";
import type { Context } from "../../context.ts";
import {
  createSession,
  findSession,
  isSessionGone,
  type Session,
  type SignedInSession,
} from "../session/session.ts";
import { type Challenge, stateOf } from "./state.ts";

/** A challenge and the browser session that opened it. */
export interface OpenedChallenge {
  challenge: Challenge;
  session: Session;
  /** The session's id if this visit started it. It is used only for the cookie. */
  newSessionId?: string;
}

export interface Visitor {
  /** The id from the session cookie. */
  sessionId?: string;
  address: string;
}

/**
 * A browser's first visit with T: it binds the challenge to this browser session.
 *
 * @returns undefined for any reason: T does not exist, is over, was opened by another browser, or belongs to a legacy
 * client at another address
 */
export async function openChallenge(
  context: Context,
  request: Visitor & { token: string },
): Promise<OpenedChallenge | undefined> {
  const { db, clock, config } = context;
  if (!looksLikeSecret(request.token)) return undefined;
  const [found] = await db
    .select()
    .from(challenge)
    .where(eq(challenge.tokenHash, sha256(request.token)));
  const now = clock.now();
  if (!found || !mayVisit(config, found, request.address) || stateOf(found, now) !== "pending")
    return undefined;

  const opening = db.transaction(async (tx) => {
    const inside = { ...context, db: tx };
    const known = request.sessionId ? await findSession(inside, request.sessionId) : undefined;
    if (!known && found.boundAt) return undefined;
    const { session, id: newSessionId } = known ? { session: known } : await createSession(inside);
    const [opened] = await tx
      .update(challenge)
      .set({ sessionHash: session.idHash, boundAt: found.boundAt ?? now })
      .where(
        and(
          eq(challenge.id, found.id),
          or(isNull(challenge.boundAt), eq(challenge.sessionHash, session.idHash)),
        ),
      )
      .returning();
    // Another browser was first: this also rolls back the session created for the binding.
    if (!opened) tx.rollback();
    return { challenge: opened!, session, newSessionId };
  });
  return opening.catch((error: unknown) => {
    if (error instanceof TransactionRollbackError || isSessionGone(error)) return undefined;
    throw error;
  });
}

/**
 * Returns the challenge that this session opened, in its current state.
 * @returns undefined when it belongs to another session, or this address may not see it
 */
export async function findOpened(
  { db, config }: Context,
  request: { id: string; session: Session; address: string },
): Promise<Challenge | undefined> {
  const [found] = await db
    .select()
    .from(challenge)
    .where(and(eq(challenge.id, request.id), eq(challenge.sessionHash, request.session.idHash)));
  return found && mayVisit(config, found, request.address) ? found : undefined;
}

/** The challenges for its user that this session has opened and nobody has decided, newest first. */
export async function listOpened(
  { db, clock, config }: Context,
  { session, address }: { session: SignedInSession; address: string },
): Promise<Challenge[]> {
  const found = await db
    .select()
    .from(challenge)
    .where(
      and(
        eq(challenge.sessionHash, session.idHash),
        eq(challenge.userName, session.userName),
        isNull(challenge.approvedAt),
        isNull(challenge.deniedAt),
        gt(challenge.expiresAt, clock.now()),
      ),
    )
    .orderBy(desc(challenge.createdAt))
    .limit(20);
  return found.filter((one) => mayVisit(config, one, address));
}

/**
 * A legacy client's challenge may only be decided at the address where it began: without a verifier, nothing else
 * distinguishes the user's own terminal from a stranger's (SECURITY.md, "Limits of legacy clients"). A bound client's browser
 * may be elsewhere (SSH).
 */
function mayVisit(config: Config, found: Challenge, address: string): boolean {
  if (found.codeChallenge !== null || config.challengeLegacy === "allow") return true;
  return config.challengeLegacy === "same_ip" && isInScope(address, addressScope(found.requestAddress));
}
