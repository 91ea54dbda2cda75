import type { Sql } from "./sql.ts";

/** Told of what goes through a pool of connections. */
export interface PoolWatch {
  /** A statement or a transaction asks for a connection. @returns what is called when it needs it no more */
  wanted?(): () => void;
  /** A statement, without its parameters. @returns what is called when it was answered */
  statement?(text: string): (error?: unknown) => void;
}

type End = (error?: unknown) => void;
type Scope = Pick<Sql, "unsafe"> & { savepoint?: Begin };
type Begin = (...args: unknown[]) => Promise<unknown>;
type Ask = (text: string, ...rest: unknown[]) => PromiseLike<unknown>;

/** Has a client watched, as far as drizzle uses one: `unsafe`, `begin` and `savepoint`. */
export function watchSql(client: Sql, { wanted, statement }: PoolWatch): void {
  const watchAsk = (scope: Scope, begin: (text: string) => (End | undefined)[]) => {
    const ask = scope.unsafe as unknown as Ask;
    const watched: Ask = (text, ...rest) => follow(ask(text, ...rest), begin(text));
    scope.unsafe = watched as unknown as Sql["unsafe"];
  };
  /** It has its connection. The work comes last, behind a name or options. */
  const inTransaction =
    (begin: Begin): Begin =>
    (...args) => {
      const work = args.pop() as (scope: Scope) => unknown;
      return begin(...args, (scope: Scope) => {
        watchAsk(scope, (text) => [statement?.(text)]);
        const { savepoint } = scope;
        if (savepoint) scope.savepoint = inTransaction(savepoint);
        return work(scope);
      });
    };
  /** While postgres.js asks for BEGIN by the same `unsafe`: that is the transaction, which is told already. */
  let beginning = false;
  watchAsk(client, (text) => [beginning ? undefined : wanted?.(), statement?.(text)]);
  const begin = client.begin as Begin;
  const watched = statement ? inTransaction(begin) : begin;
  client.begin = (async (...args: unknown[]) => {
    const done = wanted?.();
    try {
      beginning = true;
      const ended = watched(...args);
      beginning = false;
      return await ended;
    } finally {
      done?.();
    }
  }) as Sql["begin"];
}

/** To ask for its answer sends a statement, but not before whoever has made it has said how it is to be answered. */
function follow<T extends PromiseLike<unknown>>(query: T, ends: readonly (End | undefined)[]): T {
  const end = (error?: unknown) => {
    for (const one of ends) one?.(error);
  };
  query.then(() => end(), end);
  return query;
}
