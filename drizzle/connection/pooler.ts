/** The query whose result `isPooled` examines. */
export const whichBackend = "select pg_backend_pid() as pid";

/**
 * Whether the answer came through a pooler. PostgreSQL sends its process id when a connection starts. A pooler assigns
 * changing backends, so it invents an id.
 */
export function isPooled(answer: unknown): boolean {
  // postgres.js adds the id from the connection's start to each result.
  const { state, 0: row } = answer as { state?: { pid?: number }; 0?: { pid?: number } };
  return state?.pid !== undefined && state.pid !== row?.pid;
}
