import { and, eq, isNull } from "drizzle-orm";
import { auditLog, challenge } from "../../drizzle/schema/index.ts";
import { audit } from "../audit.ts";
import type { Context } from "../context.ts";
import type { Challenge } from "./state.ts";

/** Somebody has T but not the verifier: worth one event a challenge, however often they try. */
export async function noteWrongVerifier(
  { db, clock, telemetry }: Context,
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
      .returning({ id: challenge.id });
    if (first.length === 0) return false;
    await audit(tx, { at, actor: "client", action: "challenge.wrong_verifier", address, subject: found.id });
    return true;
  });
  if (noted) telemetry?.challenge("wrong_verifier");
}

/** Somebody else than the challenge is for would decide it: worth one event a person, however often they try. */
export async function noteWrongUser(
  { db, clock, telemetry }: Context,
  { id: subject }: Challenge,
  { actor, address }: { actor: string; address: string },
): Promise<void> {
  const action = "challenge.wrong_user";
  const noted = await db.transaction(async (tx) => {
    // One at a time: two that look at once would both find nothing.
    await tx
      .select({ id: challenge.id })
      .from(challenge)
      .where(eq(challenge.id, subject))
      .for("no key update");
    const same = [eq(auditLog.subject, subject), eq(auditLog.action, action), eq(auditLog.actor, actor)];
    if ((await tx.$count(auditLog, and(...same))) > 0) return false;
    await audit(tx, { at: clock.now(), actor, action, address, subject });
    return true;
  });
  if (noted) telemetry?.challenge("wrong_user");
}
