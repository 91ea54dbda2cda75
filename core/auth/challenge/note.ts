import { and, eq, isNull } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { auditLog, challenge } from "../../../drizzle/schema/index.ts";
import { audit } from "../../audit.ts";
import type { Context } from "../../context.ts";
import { countChallenge } from "./outcomes.ts";
import type { Challenge } from "./state.ts";

/**
 * Records in the audit log how a challenge began, once a signed-in user decides it. Until then anyone may have caused
 * it, and it is only counted.
 */
export async function auditBeginning(tx: Transaction, of: Challenge): Promise<void> {
  const by = { actor: "client", subject: of.id };
  await audit(tx, {
    ...by,
    at: of.createdAt,
    action: "challenge.created",
    address: of.requestAddress,
    data: { user: of.userName, bound: of.codeChallenge !== null },
  });
  if (of.wrongVerifierAt)
    await audit(tx, { ...by, at: of.wrongVerifierAt, action: "challenge.wrong_verifier" });
}

/**
 * Records that somebody has T but not the verifier, once per challenge. It is a separate event if the challenge is
 * decided (now or later, by `auditBeginning`), and only counted until then.
 */
export async function noteWrongVerifier(
  { db, clock, telemetry, counts }: Context,
  found: Challenge,
  address: string,
): Promise<void> {
  if (found.wrongVerifierAt) return;
  const at = clock.now();
  const noted = await db.transaction(async (tx) => {
    const first = await tx
      .update(challenge)
      .set({ wrongVerifierAt: at })
      .where(and(eq(challenge.id, found.id), isNull(challenge.wrongVerifierAt)))
      .returning({ approvedAt: challenge.approvedAt, deniedAt: challenge.deniedAt });
    const [now] = first;
    if (now?.approvedAt || now?.deniedAt) {
      await audit(tx, {
        at,
        actor: "client",
        action: "challenge.wrong_verifier",
        address,
        subject: found.id,
      });
    }
    return now;
  });
  if (!noted) return;
  counts?.count("challenge.wrong_verifier", address);
  countChallenge(telemetry, "wrong_verifier");
}

/** Records that the wrong user tried to decide the challenge, once per user. */
export async function noteWrongUser(
  { db, clock, telemetry }: Context,
  { id: subject, userName, requestAddress }: Challenge,
  { actor, address }: { actor: string; address: string },
): Promise<void> {
  const action = "challenge.wrong_user";
  const noted = await db.transaction(async (tx) => {
    // One at a time: two concurrent checks would both find nothing.
    await tx
      .select({ id: challenge.id })
      .from(challenge)
      .where(eq(challenge.id, subject))
      .for("no key update");
    const same = [eq(auditLog.subject, subject), eq(auditLog.action, action), eq(auditLog.actor, actor)];
    if ((await tx.$count(auditLog, and(...same))) > 0) return false;
    const data = { user: userName, asked_from: requestAddress };
    await audit(tx, { at: clock.now(), actor, action, address, subject, data });
    return true;
  });
  if (noted) countChallenge(telemetry, "wrong_user");
}
