import type { Sql } from "postgres";
import type { Database } from "../../drizzle/client.ts";
import { changeTransactions } from "../../drizzle/transactions.ts";

type Ask = Pick<Sql, "unsafe">;

/** What PostgreSQL is asked. */
interface Asked {
  text: string;
  values: readonly unknown[];
}

/**
 * Notes every statement that goes through `db` from now on, also in transactions: what PostgreSQL is asked, without the
 * values. Returns the list that they are added to.
 */
export function noteStatements(db: Database): string[] {
  const statements: string[] = [];
  listenTo(db, ({ text }) => statements.push(text));
  return statements;
}

/** As `noteStatements`, with the values. */
export function noteAsked(db: Database): Asked[] {
  const asked: Asked[] = [];
  listenTo(db, (one) => asked.push(one));
  return asked;
}

function listenTo(db: Database, note: (asked: Asked) => void): void {
  const { $client } = db as Database & { $client: Sql };
  const listen = (client: Ask) => {
    const ask = client.unsafe;
    client.unsafe = ((text: string, values: unknown[] = [], ...rest: []) => {
      note({ text, values });
      return ask(text, values as [], ...rest);
    }) as Ask["unsafe"];
  };
  listen($client);
  changeTransactions($client, listen);
}
