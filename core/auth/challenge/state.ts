import type { challenge } from "../../../drizzle/schema/index.ts";

/*
 * Vocabulary of this folder
 *
 * challenge   a terminal's request to be signed in, for one user name (docs/protocol.md)
 * T           the challenge token: 32 random bytes in both URLs; only its SHA-256 is stored
 * verifier    a second secret that only the terminal knows; the challenge holds its hash (RFC 7636 in spirit)
 * bound       has two meanings in the literature. Here, a *bound client* has sent a hash of its verifier; a challenge
 *             is *opened by* the first browser session that visits it
 * legacy      a client without a verifier
 * collect     to receive the token, with the only poll that is answered `success`
 */

export type Challenge = typeof challenge.$inferSelect;

export type ChallengeState = "pending" | "approved" | "denied" | "collected" | "expired";

/**
 * The state at the time `now`. The lifetime ends exactly at `expiresAt`: an approval that nobody collected
 * by then is lost, a refusal stays a refusal.
 */
export function stateOf(
  challenge: Pick<Challenge, "approvedAt" | "deniedAt" | "collectedAt" | "expiresAt">,
  now: Date,
): ChallengeState {
  if (challenge.collectedAt) return "collected";
  if (challenge.deniedAt) return "denied";
  if (now >= challenge.expiresAt) return "expired";
  return challenge.approvedAt ? "approved" : "pending";
}

/** What a poll answers. */
export type PollOutcome =
  /** `retryAfter`: seconds, if the client polls too fast. */
  | { status: "pending"; retryAfter?: number }
  | { status: "success"; jwt: string; expiresAt: Date; user: string }
  | { status: "unknown" | "expired" | "denied" };
