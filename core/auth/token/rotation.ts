import { after } from "../../../platform/clock.ts";

export type Algorithm = "ES256" | "Ed25519";

interface KeyTimes {
  kid: string;
  algorithm: string;
  activeAt: Date;
  expiresAt: Date | null;
}

const daySeconds = 24 * 3600;
/** Allows for clock differences, and for verifiers that cache our JWKS. */
const overlapSeconds = 3600;

/**
 * Plans which key signs now, and whether to create the next one.
 *
 * A key is published a day before it signs, so that verifiers have it by then, and verifies until the last token that
 * it can have signed has expired. The very first key (or the first of another algorithm) signs at once.
 *
 * @param keys those that still verify
 */
export function planRotation(
  keys: readonly KeyTimes[],
  policy: { algorithm: Algorithm; rotationDays: number; tokenLifetime: number },
  now: Date,
): { signing?: string; create?: { activeAt: Date; othersExpireAt: Date } } {
  const lastToken = after(now, policy.tokenLifetime);
  const ours = keys
    .filter(({ algorithm }) => algorithm === policy.algorithm)
    // A token must not outlive the key that signs it.
    .filter(({ expiresAt }) => expiresAt === null || expiresAt >= lastToken)
    .sort((a, b) => b.activeAt.getTime() - a.activeAt.getTime());
  // None is active: another process's clock is ahead. Use its key, because a second one would end it.
  const signing = ours.find((key) => key.activeAt <= now) ?? ours.at(-1);
  const newest = ours[0];
  const due = newest && after(newest.activeAt, (policy.rotationDays - 1) * daySeconds) <= now;
  if (signing && !due) return { signing: signing.kid };
  const activeAt = signing ? after(now, daySeconds) : now;
  const othersExpireAt = after(activeAt, policy.tokenLifetime + overlapSeconds);
  return { signing: signing?.kid, create: { activeAt, othersExpireAt } };
}
