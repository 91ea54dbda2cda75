/**
 * Files that mostly wait: for time limits, intervals and restarts of the processes that they start. They run in separate
 * processes, concurrently with the others, so that waiting costs no time. A file belongs here if its processor time
 * (including that of its processes) is less than half of its duration. The longest comes first.
 */
export const waitingTests = [
  "tests/chaos/schedule.test.ts",
  "tests/chaos/access_faults.test.ts",
  "cli/commands/server/start_slow.test.ts",
  "server/process/mtls.test.ts",
  "tests/chaos/upgrade.test.ts",
  "tests/chaos/cut_connections.test.ts",
  "tests/e2e/night.test.ts",
  "tests/e2e/pooler.test.ts",
  "cli/commands/scheduler/start_hostile.test.ts",
  "worker/tasks/incident-status-report-reminder.test.ts",
  "cli/commands/scheduler/start_health.test.ts",
  "cli/commands/server/start_frozen.test.ts",
  "cli/commands/server/start.test.ts",
  "tests/e2e/stream.test.ts",
  "server/stream/access.test.ts",
  "drizzle/revision/failure.test.ts",
  "platform/watchdog.test.ts",
  "cli/commands/server/start_drain.test.ts",
  "server/stream/stream.test.ts",
  "plugins/postgresql_role/postgresql_role.test.ts",
  "tests/e2e/mtls.test.ts",
  "cli/commands/server/start_signals.test.ts",
  "cli/commands/server/start_metrics.test.ts",
  "plugins/aws/aws.test.ts",
  "worker/leases.test.ts",
  "worker/time.test.ts",
  "server/stream/backlog.test.ts",
  "drizzle/connection/primary.test.ts",
  "cli/commands/server/start_telemetry.test.ts",
  "cli/commands/server/start_supervisor.test.ts",
  "server/challenge/held.test.ts",
  "tests/chaos/crash.test.ts",
];
