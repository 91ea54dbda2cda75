import type { Sql } from "./sql.ts";
import { changeTransactions, type Scope } from "./transactions.ts";

/** Observes a connection pool. */
export interface PoolWatch {
  /** A statement or transaction requests a connection. @returns a callback for when it is done with it */
  wanted?(): () => void;
  /** A statement, without its parameters. @returns a callback for when it is answered */
  statement?(text: string): (error?: unknown) => void;
}

type End = (error?: unknown) => void;
type Ask = (text: string, ...rest: unknown[]) => PromiseLike<unknown>;

/** Watches a client's methods that drizzle uses: `unsafe`, `begin` and `savepoint`. */
export function watchSql(client: Sql, { wanted, statement }: PoolWatch): void {
  const watchAsk = (scope: Scope, begin: (text: string) => (End | undefined)[]) => {
    const ask = scope.unsafe as unknown as Ask;
    const watched: Ask = (text, ...rest) => follow(ask(text, ...rest), begin(text));
    scope.unsafe = watched as unknown as Sql["unsafe"];
  };
  // Statements in a transaction use its connection, so they request none.
  if (statement) changeTransactions(client, (scope) => watchAsk(scope, (text) => [statement(text)]));
  /** Set while postgres.js runs BEGIN through the same `unsafe`: the transaction is already counted. */
  let beginning = false;
  watchAsk(client, (text) => [beginning ? undefined : wanted?.(), statement?.(text)]);
  const begin = client.begin as (...args: unknown[]) => Promise<unknown>;
  client.begin = (async (...args: unknown[]) => {
    const done = wanted?.();
    try {
      beginning = true;
      const ended = begin(...args);
      beginning = false;
      return await ended;
    } finally {
      done?.();
    }
  }) as Sql["begin"];
}

/** Reading its result sends a statement, so this waits until the caller has set how to return it. */
function follow<T extends PromiseLike<unknown>>(query: T, ends: readonly (End | undefined)[]): T {
  const end = (error?: unknown) => {
    for (const one of ends) one?.(error);
  };
  query.then(() => end(), end);
  return query;
}
