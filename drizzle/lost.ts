import type { Scope } from "./transactions.ts";

type Work = (scope: Scope) => unknown;
type Begin = (...args: unknown[]) => Promise<unknown>;

/**
 * Ends transactions whose connection is lost without another word on it. postgres.js by itself sends their rollback, or
 * whatever statement comes next, where there is no socket any more: that throws where nobody can catch it, which ends the
 * process, or it stays behind and spoils the connection that is opened in its place.
 *
 * It rejects such a transaction when the connection closes, whatever becomes of its work; so the work that has met the
 * loss, or outlived it, is left where it stands.
 */
export function endWithConnection(client: { begin: unknown }): void {
  const begin = client.begin as Begin;
  client.begin = async (...args: unknown[]) => {
    const work = args.pop() as Work;
    const connection = { lost: false };
    const ended = begin(...args, (scope: Scope) => leave(connection, scope, work));
    try {
      return await ended;
    } finally {
      // Or it has ended in order, and is asked nothing more either.
      connection.lost = true;
    }
  };
}

async function leave(connection: { lost: boolean }, scope: Scope, work: Work): Promise<unknown> {
  guard(connection, scope);
  let outcome: { value: unknown } | { error: unknown };
  try {
    outcome = { value: await work(scope) };
  } catch (error) {
    outcome = { error };
    // The failure is told before the end of the connection is.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (connection.lost || ("error" in outcome && isFatal(outcome.error))) return new Promise(() => {});
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

function guard(connection: { lost: boolean }, scope: Scope): void {
  const { savepoint } = scope;
  const ask = scope.unsafe as (...args: unknown[]) => unknown;
  const asking = (...args: unknown[]) => {
    if (connection.lost) throw connectionClosed();
    return ask(...args);
  };
  scope.unsafe = asking as Scope["unsafe"];
  if (!savepoint) return;
  scope.savepoint = (...args: unknown[]) => {
    if (connection.lost) return Promise.reject(connectionClosed());
    const work = args.pop() as Work;
    return savepoint(...args, (inner: Scope) => leave(connection, inner, work));
  };
}

/** As postgres.js calls it. */
const connectionClosed = () =>
  Object.assign(new Error("write CONNECTION_CLOSED"), {
    code: "CONNECTION_CLOSED",
    errno: "CONNECTION_CLOSED",
  });

/** PostgreSQL closes the connection behind such an error (protocol-message-formats, field S). */
function isFatal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { severity } = cause as { severity?: unknown };
    if (severity === "FATAL" || severity === "PANIC") return true;
  }
  return false;
}
