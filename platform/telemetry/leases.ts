import type { Meter } from "@opentelemetry/api";

/** In seconds, from one PostgreSQL statement to the maximum timeout of plugins. */
export const leaseBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const histograms = new WeakMap<Meter, ReturnType<Meter["createHistogram"]>>();

/** Records how long it took to issue a lease, from the request to the committed result. */
export function recordLeaseIssue(
  meter: Meter | undefined,
  seconds: number,
  outcome: "issued" | "failed",
): void {
  if (!meter) return;
  const known = histograms.get(meter);
  const histogram =
    known ??
    meter.createHistogram("svc_lease_issue_duration_seconds", {
      description: "Leases that were issued or failed, by how long it took",
      unit: "s",
      advice: { explicitBucketBoundaries: leaseBuckets },
    });
  if (!known) histograms.set(meter, histogram);
  histogram.record(seconds, { outcome });
}
