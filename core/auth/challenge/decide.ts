import { and, eq, gt, isNull, sql } from "drizzle-orm";
import { challenge, session as sessions } from "../../../drizzle/schema/index.ts";
import { Conflict, Forbidden, NotFound } from "../../../platform/errors.ts";
import { toHex } from "../../../platform/secret.ts";
import { audit } from "../../audit.ts";
import type { Context } from "../../context.ts";
import { holdIssuerSession } from "../session/issuer_session.ts";
import { lockSignIns, type SignedInSession } from "../session/session.ts";
import { auditBeginning, noteWrongUser } from "./note.ts";
import { findOpened } from "./open.ts";
import { countChallenge } from "./outcomes.ts";
import { type Challenge, stateOf } from "./state.ts";
import type { ChallengeWatch } from "./watch.ts";

/**
 * Approves or denies a challenge for the user of the session that opened it. Only the first decision counts.
 *
 * @throws NotFound when this session did not open such a challenge, or may not from this address
 * @throws Forbidden when the challenge is for another user, or the sign-in of the session has ended meanwhile
 * @throws Conflict when it is over: already decided or expired
 */
export async function decideChallenge(
  context: Context & { watch: ChallengeWatch },
  request: { id: string; decision: "approve" | "deny"; session: SignedInSession; address: string },
): Promise<Challenge> {
  const { db, clock, telemetry } = context;
  const { id, decision, session, address } = request;
  const found = await findOpened(context, { id, session, address });
  if (!found) throw new NotFound("There is no such sign-in request for this browser");
  const at = clock.now();
  const actor = session.userName;
  if (actor !== found.userName) {
    await noteWrongUser(context, found, { actor, address });
    throw new Forbidden("This sign-in request is for somebody else");
  }
  const decided = await db.transaction(async (tx) => {
    // The form's body may have arrived long after the session was read.
    await lockSignIns(tx, actor);
    const isValid = and(
      eq(sessions.idHash, session.idHash),
      eq(sessions.userName, actor),
      gt(sessions.expiresAt, at),
    );
    const [now] = await tx
      .select({ groups: sessions.groups, issuerSessionId: sessions.issuerSessionId })
      .from(sessions)
      .where(isValid);
    const issuerSessionId = now?.issuerSessionId ?? null;
    if (!now || (issuerSessionId && !(await holdIssuerSession(tx, sql`${issuerSessionId}::uuid`))))
      throw new Forbidden("You are no longer signed in in this browser: reload the page");
    const { groups } = now;
    const [decided] = await tx
      .update(challenge)
      .set(decision === "approve" ? { approvedAt: at, groups, issuerSessionId } : { deniedAt: at })
      .where(
        and(
          eq(challenge.id, id),
          eq(challenge.sessionHash, session.idHash),
          isNull(challenge.approvedAt),
          isNull(challenge.deniedAt),
          gt(challenge.expiresAt, at),
        ),
      )
      .returning();
    if (!decided) {
      const [over] = await tx.select().from(challenge).where(eq(challenge.id, id));
      throw new Conflict(`This sign-in request is already ${over ? stateOf(over, at) : "gone"}`);
    }
    await auditBeginning(tx, decided);
    await audit(tx, {
      at,
      actor,
      action: decision === "approve" ? "challenge.approved" : "challenge.denied",
      address,
      subject: id,
    });
    return decided;
  });
  countChallenge(telemetry, decision === "approve" ? "approved" : "denied");
  // Other processes learn of it from the database in a moment. This one must not answer `pending` again.
  context.watch.decided(toHex(decided.tokenHash));
  return decided;
}
