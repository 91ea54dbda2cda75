import { and, eq, gt, isNull, sql } from "drizzle-orm";
import { challenge } from "../../../drizzle/schema/index.ts";
import { Conflict, Forbidden, NotFound } from "../../../platform/errors.ts";
import { toHex } from "../../../platform/secret.ts";
import { audit } from "../../audit.ts";
import type { Context } from "../../context.ts";
import { holdIssuerSession } from "../session/issuer_session.ts";
import type { SignedInSession } from "../session/session.ts";
import { auditBeginning, noteWrongUser } from "./note.ts";
import { findOpened } from "./open.ts";
import { countChallenge } from "./outcomes.ts";
import { type Challenge, stateOf } from "./state.ts";
import type { ChallengeWatch } from "./watch.ts";

/**
 * Approves or denies a challenge for the user of the session that opened it. Only the first decision counts.
 *
 * @throws NotFound when this session did not open such a challenge, or may not from this address
 * @throws Forbidden when the challenge is for another user, or the issuer has ended the sign-in of the session meanwhile
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
  const { groups, issuerSessionId } = session;
  const decided = await db.transaction(async (tx) => {
    if (issuerSessionId && !(await holdIssuerSession(tx, sql`${issuerSessionId}::uuid`)))
      throw new Forbidden("You are no longer signed in in this browser: reload the page");
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
      const [now] = await tx.select().from(challenge).where(eq(challenge.id, id));
      throw new Conflict(`This sign-in request is already ${now ? stateOf(now, at) : "gone"}`);
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
