import { countLeases } from "../core/access/count.ts";
import { leaseBuckets } from "../core/access/issue_duration.ts";
import type { LeaseAttempt } from "../core/access/revoke.ts";
import type { Attempt } from "../core/incident/delivery/attempt.ts";
import { countDeliveries } from "../core/outbox/list.ts";
import type { Claim } from "../core/schedule/claims.ts";
import { keepsFailing, pluginsThatKeepFailing, scheduleStatus } from "../core/schedule/status.ts";
import type { Telemetry } from "../platform/telemetry/telemetry.ts";
import type { WorkerDeps } from "./deps.ts";
import type { Outcome } from "./run.ts";
import { inTime } from "./time.ts";

/** How long database metrics are cached, however often they are scraped. */
const keptMilliseconds = 10_000;
const patienceMilliseconds = 5000;

/** Metrics of runs, deliveries and the state of the schedule. */
export class ObservedSchedule {
  readonly #runs;
  readonly #duration;
  readonly #items;
  readonly #attempts;
  readonly #revocations;

  constructor(
    private readonly telemetry: Telemetry,
    deps: Pick<WorkerDeps, "schedule">,
  ) {
    const { meter } = telemetry;
    this.#runs = meter?.createCounter("svc_schedule_runs_total", {
      description: "Runs of this worker, by outcome",
    });
    this.#duration = meter?.createHistogram("svc_schedule_run_duration_seconds", {
      description: "Duration of this worker's runs",
      unit: "s",
      advice: { explicitBucketBoundaries: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600] },
    });
    this.#items = meter?.createCounter("svc_schedule_items_total", {
      description: "Items of this worker's runs, by outcome",
    });
    this.#attempts = meter?.createCounter("svc_delivery_attempts_total", {
      description: "Delivery attempts of this worker, by outcome",
    });
    this.#revocations = meter?.createHistogram("svc_lease_revoke_duration_seconds", {
      description: "Attempts of this worker to revoke a lease at its target, by outcome",
      unit: "s",
      advice: { explicitBucketBoundaries: leaseBuckets },
    });
    if (meter) observeDatabase(meter, deps);
  }

  async run({ task, slot, attempt }: Claim, work: () => Promise<Outcome>): Promise<Outcome> {
    const began = performance.now();
    const outcome = await this.#traced(
      `run ${task}`,
      { "svc.task": task, "svc.slot": slot.toISOString(), "svc.attempt": attempt },
      work,
      ({ state }) => state === "Failed",
    );
    const state = outcome.state.toLowerCase();
    this.#runs?.add(1, { task, state });
    this.#duration?.record((performance.now() - began) / 1000, { task });
    const { done = 0, skipped = 0, failed = 0 } = outcome.result ?? {};
    for (const [became, count] of Object.entries({ done, skipped, failed }))
      this.#items?.add(count, { task, outcome: became });
    return outcome;
  }

  async delivery(attempt: () => Promise<Attempt>): Promise<Attempt> {
    const outcome = await this.#traced("delivery", {}, attempt, (came) => came === "dead");
    this.#attempts?.add(1, { outcome });
    return outcome;
  }

  async revocation(attempt: () => Promise<LeaseAttempt>): Promise<LeaseAttempt> {
    const began = performance.now();
    const outcome = await attempt();
    const seconds = (performance.now() - began) / 1000;
    this.#revocations?.record(seconds, { outcome });
    return outcome;
  }

  async #traced<T>(
    name: string,
    attributes: Record<string, string | number>,
    work: () => Promise<T>,
    hasFailed: (came: T) => boolean,
  ): Promise<T> {
    const { tracing } = this.telemetry;
    if (!tracing) return await work();
    return await tracing.within({ name, attributes }, async (span) => {
      const came = await work();
      if (hasFailed(came)) span.failed();
      return came;
    });
  }
}

/** The same numbers as `svc scheduler status`. Every worker of a database reports the same values. */
function observeDatabase(
  meter: NonNullable<Telemetry["meter"]>,
  { schedule }: Pick<WorkerDeps, "schedule">,
): void {
  const status = cached(() => scheduleStatus(schedule()));
  const deliveries = cached(() => countDeliveries(schedule(), ["Queued", "Dead"]));
  const leases = cached(() => countLeases(schedule()));
  const gauge = (name: string, description: string, unit?: string) =>
    meter.createObservableGauge(name, { description, unit });
  gauge("svc_schedule_lag_seconds", "How long a due slot has been waiting for a worker", "s").addCallback(
    async (seen) => {
      for (const { name: task, lagSeconds } of (await status())?.tasks ?? [])
        seen.observe(lagSeconds, { task });
    },
  );
  gauge("svc_schedule_failures", "Failed and missed runs of the last 24 h, of all workers").addCallback(
    async (seen) => {
      for (const { name: task, failures } of (await status())?.tasks ?? []) seen.observe(failures, { task });
    },
  );
  gauge("svc_schedule_failing", "Whether a task keeps failing").addCallback(async (seen) => {
    for (const task of (await status())?.tasks ?? [])
      seen.observe(keepsFailing(task) ? 1 : 0, { task: task.name });
  });
  gauge("svc_schedule_failed_ratio", "The share of items that failed in the last run").addCallback(
    async (seen) => {
      for (const { name: task, failedShare } of (await status())?.tasks ?? [])
        if (failedShare !== null) seen.observe(failedShare, { task });
    },
  );
  gauge(
    "svc_schedule_plugin_failing_seconds",
    "How long a plugin has failed for all of its items in a task",
    "s",
  ).addCallback(async (seen) => {
    const now = await status();
    for (const { task, plugin, since } of now ? pluginsThatKeepFailing(now) : [])
      seen.observe((now!.now.getTime() - since.getTime()) / 1000, { task, plugin });
  });
  gauge("svc_schedule_paused", "Whether a task is paused").addCallback(async (seen) => {
    for (const { name: task, pausedAt } of (await status())?.tasks ?? [])
      seen.observe(pausedAt === null ? 0 : 1, { task });
  });
  gauge("svc_schedule_workers", "Workers with a recent heartbeat").addCallback(async (seen) => {
    const now = await status();
    if (now) seen.observe(now.workers.filter(({ alive }) => alive).length);
  });
  gauge("svc_deliveries", "Deliveries that are queued or dead").addCallback(async (seen) => {
    for (const [state, count] of Object.entries((await deliveries()) ?? {}))
      seen.observe(count, { state: state.toLowerCase() });
  });
  gauge("svc_leases", "Leases of access roles that have not ended, by state").addCallback(async (seen) => {
    const { stuck: _, ...states } = (await leases()) ?? {};
    for (const [state, count] of Object.entries(states)) seen.observe(count, { state });
  });
  gauge("svc_leases_stuck", "Leases whose revocation keeps failing").addCallback(async (seen) => {
    const now = await leases();
    if (now) seen.observe(now.stuck);
  });
}

/**
 * Caches an answer for a while. Returns undefined while the database is unavailable: no number is better than a stale
 * one.
 */
export function cached<T>(
  ask: () => Promise<T>,
  milliseconds = () => performance.now(),
): () => Promise<T | undefined> {
  let answer: Promise<T | undefined> | undefined;
  let asked = Number.NEGATIVE_INFINITY;
  return () => {
    const now = milliseconds();
    if (!answer || now - asked >= keptMilliseconds) {
      asked = now;
      answer = inTime(patienceMilliseconds, ask()).catch(() => undefined);
    }
    return answer;
  };
}
