import type { Sql } from "postgres";
import type { Database } from "../../drizzle/client.ts";

type Ask = Pick<Sql, "unsafe">;

/**
 * Notes every statement that goes through `db` from now on, also in transactions: what PostgreSQL is asked, without the
 * values. Returns the list that they are added to.
 */
export function noteStatements(db: Database): string[] {
  const { $client } = db as Database & { $client: Sql };
  const statements: string[] = [];
  const listen = (client: Ask) => {
    const ask = client.unsafe;
    client.unsafe = ((statement: string, ...rest: []) => {
      statements.push(statement);
      return ask(statement, ...rest);
    }) as Ask["unsafe"];
  };
  listen($client);
  const begin = $client.begin as (...args: unknown[]) => Promise<unknown>;
  $client.begin = ((...args: unknown[]) => {
    const work = args.pop() as (client: Ask) => unknown;
    return begin(...args, (client: Ask) => {
      listen(client);
      return work(client);
    });
  }) as Sql["begin"];
  return statements;
}
