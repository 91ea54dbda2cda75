import { perMeter } from "../../../platform/telemetry/per_meter.ts";
import type { Telemetry } from "../../../platform/telemetry/telemetry.ts";

/**
 * The outcomes of challenges. `authenticated`: its token was collected; `expired`: a terminal learned that it expired;
 * `refused`: none was opened, because the verifier was missing or there were too many.
 */
const outcomes = [
  "created",
  "approved",
  "denied",
  "authenticated",
  "expired",
  "refused",
  "wrong_user",
  "wrong_verifier",
] as const;
export type ChallengeOutcome = (typeof outcomes)[number];

/** Counts the outcomes; all series exist from the start, so that a rate is right from the first event. */
export const challengeCounter = perMeter((meter) => {
  const counter = meter.createCounter("svc_challenges_total", {
    description: "Sign-in requests by outcome",
  });
  for (const outcome of outcomes) counter.add(0, { outcome });
  return counter;
});

export function countChallenge(telemetry: Telemetry | undefined, outcome: ChallengeOutcome): void {
  if (telemetry?.meter) challengeCounter(telemetry.meter).add(1, { outcome });
}
