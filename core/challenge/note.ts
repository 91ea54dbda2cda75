import { and, eq, isNull } from "drizzle-orm";
import { challenge } from "../../drizzle/schema/index.ts";
import { audit } from "../audit.ts";
import type { Context } from "../context.ts";
import type { Challenge } from "./state.ts";

/** Somebody has T but not the verifier: worth one event a challenge, however often they try. */
export async function noteWrongVerifier(
  { db, clock }: Context,
  found: Challenge,
  address: string,
): Promise<void> {
  if (found.wrongVerifierAt) return;
  const at = clock.now();
  await db.transaction(async (tx) => {
    const first = await tx
      .update(challenge)
      .set({ wrongVerifierAt: at })
      .where(and(eq(challenge.id, found.id), isNull(challenge.wrongVerifierAt)))
      .returning({ id: challenge.id });
    if (first.length === 0) return;
    await audit(tx, { at, actor: "client", action: "challenge.wrong_verifier", address, subject: found.id });
  });
}
