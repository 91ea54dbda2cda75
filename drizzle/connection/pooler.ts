/** What to ask of a connection. */
export const whichBackend = "select pg_backend_pid() as pid";

/**
 * Whether the answer came by way of a pooler: PostgreSQL tells its process number when a connection begins, and a pooler,
 * which lends now this backend and now that one, makes up a number of its own.
 */
export function isPooled(answer: unknown): boolean {
  // What was told at the beginning, postgres.js puts into each answer.
  const { state, 0: row } = answer as { state?: { pid?: number }; 0?: { pid?: number } };
  return state?.pid !== undefined && state.pid !== row?.pid;
}
