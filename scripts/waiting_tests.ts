/**
 * Files that mostly wait: for time limits, intervals and restarts of the processes that they start. They run in processes
 * of their own beside the others, so that their waiting costs no time. A file belongs here if its processor time (its
 * own and that of its processes) is less than a third of its duration; the longest comes first.
 */
export const waitingTests = [
  "tests/chaos/schedule.test.ts",
  "tests/chaos/cut_connections.test.ts",
  "cli/commands/scheduler/start_hostile.test.ts",
  "server/stream/stream.test.ts",
  "server/stream/access.test.ts",
  "server/stream/backlog.test.ts",
  "cli/commands/scheduler/start_health.test.ts",
  "tests/chaos/due_reminders.test.ts",
  "cli/commands/server/start_frozen.test.ts",
  "tests/chaos/clock_jump.test.ts",
  "tests/chaos/upgrade.test.ts",
  "platform/watchdog.test.ts",
  "tests/e2e/pooler.test.ts",
  "cli/commands/server/start_drain.test.ts",
  "cli/commands/server/start_slow.test.ts",
  "drizzle/revision/failure.test.ts",
  "worker/time.test.ts",
  "cli/commands/server/start_signals.test.ts",
  "server/challenge/held.test.ts",
  "cli/commands/server/start_supervisor.test.ts",
  "tests/e2e/mail.test.ts",
  "tests/chaos/crash.test.ts",
];
