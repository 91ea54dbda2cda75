import type { Meter } from "@opentelemetry/api";

/**
 * What becomes of challenges. `authenticated`: its token was collected; `expired`: a terminal was told so;
 * `refused`: none was opened, for want of a verifier or because there were too many.
 */
const challengeOutcomes = [
  ...(["created", "approved", "denied", "authenticated", "expired", "refused"] as const),
  ...(["wrong_user", "wrong_verifier"] as const),
] as const;
export type ChallengeOutcome = (typeof challengeOutcomes)[number];

/** Counts them; all of them are there from the start, so that a rate is right from the first one on. */
export function challengeCounter(meter: Meter): (outcome: ChallengeOutcome) => void {
  const counter = meter.createCounter("svc_challenges_total", {
    description: "Sign-in requests by what became of them",
  });
  for (const outcome of challengeOutcomes) counter.add(0, { outcome });
  return (outcome) => counter.add(1, { outcome });
}
