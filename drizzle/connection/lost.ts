import { withTimeLimit } from "../../platform/time_limit.ts";
import type { Scope } from "./transactions.ts";

type Work = (scope: Scope) => unknown;
type Begin = (...args: unknown[]) => Promise<unknown>;

interface Connection {
  lost: boolean;
  closed: Promise<void>;
}

/** PostgreSQL closes a connection immediately after a fatal error on it. */
const closingMilliseconds = 1000;

/**
 * Ends transactions on a lost connection without sending anything more on it. postgres.js alone would send their
 * rollback, or the next statement, to a socket that no longer exists. That throws an uncatchable exception, which ends
 * the process, or breaks the connection opened in its place.
 *
 * Rejects the transaction when the connection closes, whatever the outcome of its work; work that is still running then
 * is abandoned.
 */
export function endWithConnection(client: { begin: unknown }): void {
  const begin = client.begin as Begin;
  client.begin = async (...args: unknown[]) => {
    const work = args.pop() as Work;
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const connection: Connection = { lost: false, closed };
    const ended = begin(...args, (scope: Scope) => leave(connection, scope, work));
    try {
      return await ended;
    } finally {
      // Or it has ended normally, and receives no more statements either.
      connection.lost = true;
      close();
    }
  };
}

async function leave(connection: Connection, scope: Scope, work: Work): Promise<unknown> {
  guard(connection, scope);
  let outcome: { value: unknown } | { error: unknown };
  try {
    outcome = { value: await work(scope) };
  } catch (error) {
    outcome = { error };
    // The failure is reported before the end of the connection.
    await new Promise((resolve) => setImmediate(resolve));
    // The error may also come from another connection used by the work. Then ours survives, and is rolled back.
    if (!connection.lost && isFatal(error)) await withTimeLimit(closingMilliseconds, connection.closed);
  }
  if (connection.lost) return new Promise(() => {});
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

function guard(connection: Connection, scope: Scope): void {
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

/** The error that postgres.js raises. */
const connectionClosed = () =>
  Object.assign(new Error("write CONNECTION_CLOSED"), {
    code: "CONNECTION_CLOSED",
    errno: "CONNECTION_CLOSED",
  });

/** PostgreSQL closes the connection after such an error (protocol-message-formats, field V). */
function isFatal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { severity } = cause as { severity?: unknown };
    if (severity === "FATAL" || severity === "PANIC") return true;
  }
  return false;
}
