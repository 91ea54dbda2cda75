import type { Meter } from "@opentelemetry/api";

/**
 * The outcomes of challenges. `authenticated`: its token was collected; `expired`: a terminal learned that it expired;
 * `refused`: none was opened, because the verifier was missing or there were too many.
 */
const challengeOutcomes = [
  ...(["created", "approved", "denied", "authenticated", "expired", "refused"] as const),
  ...(["wrong_user", "wrong_verifier"] as const),
] as const;
export type ChallengeOutcome = (typeof challengeOutcomes)[number];

/** Counts the outcomes; all series exist from the start, so that a rate is right from the first event. */
export function challengeCounter(meter: Meter): (outcome: ChallengeOutcome) => void {
  const counter = meter.createCounter("svc_challenges_total", {
    description: "Sign-in requests by outcome",
  });
  for (const outcome of challengeOutcomes) counter.add(0, { outcome });
  return (outcome) => counter.add(1, { outcome });
}
