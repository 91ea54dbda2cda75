import type { Sql } from "./sql.ts";
import { changeTransactions, type Scope } from "./transactions.ts";

// What a server waits for in PostgreSQL ends in time. A firewall can drop a connection without a word, and TCP then tries
// for a quarter of an hour; somebody can forget a transaction that holds a lock.

/** How often a statement that waits on its connection for others is looked at again. */
const againMilliseconds = 100;

/** What postgres.js has of a statement. */
interface Statement extends PromiseLike<unknown> {
  /** Set once the statement is sent. */
  state: object | null;
  /** Whether PostgreSQL works on it, and not on one that was sent before it on the same connection. */
  active: boolean;
  canceller(statement: Statement): Promise<void>;
}

/**
 * Cancels statements that take longer than this, counting the time for which they wait for a connection. PostgreSQL would
 * go on with a statement whose connection was closed, and hold its place among the connections. `answered` is called for
 * each one that succeeds.
 */
export function limitStatements(client: Sql, seconds: number, answered: () => void = () => {}): void {
  limit(client, seconds, false, answered);
  changeTransactions(client, (scope) => limit(scope, seconds, true, answered));
}

/**
 * Whether cancelling is certain to leave nothing behind. A write on its own may wait for a standby: cancelled, it would
 * be committed without that. Its connection is closed instead, as that of a COMMIT.
 */
const isRead = (text: string) => /^\s*select\b/i.test(text);

function limit(scope: Scope, seconds: number, isTransaction: boolean, answered: () => void): void {
  const ask = scope.unsafe as unknown as (text: string, ...rest: unknown[]) => Statement;
  const limited: typeof ask = (text, ...rest) => {
    const statement = ask(text, ...rest);
    const cancel = () => {
      const { active, state } = statement;
      const isQueued = !state && !isTransaction;
      // Of a statement that waits on its connection, postgres.js would give the answer to the next one, and never send
      // the rest of the transaction.
      if (!active && !isQueued) timer = setTimeout(cancel, againMilliseconds);
      // Closing the connection is left to the socket: it has no answer for this either.
      else if (isQueued || isTransaction || isRead(text)) statement.canceller(statement).catch(() => {});
    };
    let timer = setTimeout(cancel, seconds * 1000);
    const end = () => clearTimeout(timer);
    statement.then(() => {
      end();
      answered();
    }, end);
    return statement;
  };
  scope.unsafe = limited as unknown as Sql["unsafe"];
}
