import { and, eq, gt, isNotNull, isNull } from "drizzle-orm";
import { challenge, token } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { audit } from "../../audit.ts";
import type { Context } from "../../context.ts";
import { signToken, type TokenClaims } from "../token/issue.ts";
import type { Keys } from "../token/keys.ts";
import { countChallenge } from "./outcomes.ts";
import type { Challenge, PollOutcome } from "./state.ts";

/** How long the verifier's holder may collect again, in case the answer was lost. */
const collectAgainSeconds = 10;

interface CollectContext extends Context {
  keys: Keys;
}

/** The client that collects, and the thumbprint of its certificate, if it has one. */
interface Collector {
  address: string;
  certificate?: string;
}

/**
 * Issues the single token of an approved challenge. However many polls there are, one changes the row. A later poll of
 * a legacy client gets `unknown`. A bound client is asked to retry, because its first connection may have broken.
 */
export async function collect(
  { db, clock, config, keys, telemetry }: CollectContext,
  found: Challenge,
  { address, certificate }: Collector,
): Promise<PollOutcome> {
  // Before the row changes: a missing key must not use up the challenge.
  const key = await keys.signing();
  const now = clock.now();
  // Whole seconds, as in the token, so that signing again gives the same claims.
  const issuedAt = new Date(Math.floor(now.getTime() / 1000) * 1000);
  const wanted = {
    jti: crypto.randomUUID(),
    user: found.userName,
    issuedAt,
    expiresAt: after(issuedAt, config.tokenLifetime),
    certificate,
  };
  const claims = await db.transaction(async (tx): Promise<TokenClaims | undefined> => {
    const [won] = await tx
      .update(challenge)
      .set({ collectedAt: now })
      .where(
        and(
          eq(challenge.id, found.id),
          isNotNull(challenge.approvedAt),
          isNull(challenge.collectedAt),
          gt(challenge.expiresAt, now),
        ),
      )
      // The groups may have changed since it was found.
      .returning({ groups: challenge.groups });
    if (!won) return undefined;
    const claims = { ...wanted, ...won };
    const { user: userName, certificate: certificateSha256, ...rest } = claims;
    const { id: challengeId, issuerSessionId } = found;
    await tx.insert(token).values({ ...rest, userName, certificateSha256, challengeId, issuerSessionId });
    await audit(tx, {
      at: now,
      actor: found.userName,
      action: "challenge.collected",
      address,
      subject: found.id,
      data: { jti: claims.jti },
    });
    return claims;
  });
  if (claims) {
    countChallenge(telemetry, "authenticated");
    return success(claims, await signToken(config, key, claims));
  }
  return found.codeChallenge === null ? { status: "unknown" } : { status: "pending", retryAfter: 1 };
}

/**
 * Returns the same token again to a bound client, within seconds of the first time, and with the same certificate: the token
 * ends with the one that it is bound to.
 */
export async function collectAgain(
  { db, clock, config, keys }: CollectContext,
  found: Challenge,
  { certificate }: Collector,
): Promise<PollOutcome> {
  const inTime = found.collectedAt && clock.now() < after(found.collectedAt, collectAgainSeconds);
  if (found.codeChallenge === null || !inTime) return { status: "unknown" };
  const [issued] = await db.select().from(token).where(eq(token.challengeId, found.id));
  if (!issued || issued.revokedAt || issued.certificateSha256 !== (certificate ?? null))
    return { status: "unknown" };
  const claims: TokenClaims = { ...issued, user: issued.userName, certificate };
  return success(claims, await signToken(config, await keys.signing(), claims));
}

function success(claims: TokenClaims, jwt: string): PollOutcome {
  return { status: "success", jwt, expiresAt: claims.expiresAt, user: claims.user };
}
