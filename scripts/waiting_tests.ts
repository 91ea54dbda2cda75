/**
 * Files that mostly wait: for time limits, intervals and restarts of the processes that they start. They run in a process
 * of their own beside the others, so that their waiting costs no time. A file belongs here if its processor time (its
 * own and that of its processes) is less than a third of its duration; the longest comes first.
 */
export const waitingTests = [
  "cli/commands/server/start_slow.test.ts",
  "tests/chaos/upgrade.test.ts",
  "tests/chaos/cut_connections.test.ts",
  "cli/commands/scheduler/start_hostile.test.ts",
  "cli/commands/scheduler/start_health.test.ts",
  "cli/commands/server/start_frozen.test.ts",
  "tests/chaos/due_reminders.test.ts",
  "tests/chaos/clock_jump.test.ts",
  "platform/watchdog.test.ts",
];
