import type { Sql } from "./sql.ts";

/** What a transaction, or a savepoint in one, asks its statements of. */
export type Scope = Pick<Sql, "unsafe"> & { savepoint?: Begin };
type Begin = (...args: unknown[]) => Promise<unknown>;

/** Has `change` change each transaction of a client and each savepoint, as far as drizzle uses these, before it begins. */
export function changeTransactions(client: Sql, change: (scope: Scope) => void): void {
  /** The work comes last, behind a name or options. */
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
