import type { Sql } from "postgres";

/** The client of a transaction or savepoint. */
export type Scope = Pick<Sql, "unsafe"> & { savepoint?: Begin };
type Begin = (...args: unknown[]) => Promise<unknown>;

/**
 * Calls `change` with each transaction and savepoint of a client before it starts, for those methods that drizzle uses.
 */
export function changeTransactions(client: Sql, change: (scope: Scope) => void): void {
  /** The callback is the last argument, after a name or options. */
  const around =
    (begin: Begin): Begin =>
    (...args) => {
      const work = args.pop() as (scope: Scope) => unknown;
      return begin(...args, (scope: Scope) => {
        change(scope);
        const { savepoint } = scope;
        if (savepoint) scope.savepoint = around(savepoint);
        return work(scope);
      });
    };
  client.begin = around(client.begin as Begin) as Sql["begin"];
}
