import type { ScheduleStatus } from "./status.ts";

/** The status as programs read it: names in snake_case, instants as ISO texts. */
export function asJson({ now, tasks, workers }: ScheduleStatus) {
  return {
    now: now.toISOString(),
    tasks: tasks.map(({ name, state, since, pausedAt, last, due, next, lagSeconds, failures, failing }) => ({
      ...{ name, state, since, paused_at: pausedAt, due, next, lag_seconds: lagSeconds, failures },
      failing: failing && { since: failing.since, runs: failing.runs },
      last: last && {
        ...{ slot: last.slot, state: last.state, trigger: last.trigger, attempt: last.attempt },
        ...{ started_at: last.startedAt, finished_at: last.finishedAt, lease_until: last.leaseUntil },
        ...{ error: last.error, result: last.result },
      },
    })),
    workers: workers.map(({ id, host, pid, startedAt, seenAt, alive }) => ({
      ...{ id, host, pid, started_at: startedAt, seen_at: seenAt, alive },
    })),
  };
}
