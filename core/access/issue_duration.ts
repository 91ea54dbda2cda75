import { perMeter } from "../../platform/telemetry/per_meter.ts";
import type { Telemetry } from "../../platform/telemetry/telemetry.ts";

/** In seconds, from one PostgreSQL statement to the maximum timeout of plugins. */
export const leaseBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const histogramOf = perMeter((meter) =>
  meter.createHistogram("svc_lease_issue_duration_seconds", {
    description: "Leases that were issued or failed, by how long it took",
    unit: "s",
    advice: { explicitBucketBoundaries: leaseBuckets },
  }),
);

/** Records how long it took to issue a lease, from the request to the committed result. */
export function recordLeaseIssue(
  telemetry: Telemetry | undefined,
  seconds: number,
  outcome: "issued" | "failed",
): void {
  if (telemetry?.meter) histogramOf(telemetry.meter).record(seconds, { outcome });
}
