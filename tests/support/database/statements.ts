import type { Sql } from "postgres";
import type { Database } from "../../../drizzle/client.ts";
import { hintStatement } from "../../../drizzle/connection/notify.ts";
import { changeTransactions } from "../../../drizzle/connection/transactions.ts";

type Ask = Pick<Sql, "unsafe">;

/** A statement sent to PostgreSQL. */
interface Asked {
  text: string;
  values: readonly unknown[];
}

/**
 * Records the text of every statement of `db` from now on, including those in transactions, without values. Returns the
 * list that they are added to. Omits hints of new events, because their number depends on the duration of writes.
 */
export function noteStatements(db: Database): string[] {
  const statements: string[] = [];
  listenTo(db, ({ text }) => statements.push(text));
  return statements;
}

/** Like `noteStatements`, with the values. */
export function noteAsked(db: Database): Asked[] {
  const asked: Asked[] = [];
  listenTo(db, (one) => asked.push(one));
  return asked;
}

/** The rows that the steps of a statement's plan return or filter out when it runs again. */
export async function rowsRead(db: Database, { text, values }: Asked): Promise<number> {
  const { $client } = db as Database & { $client: Sql };
  return rowsIn(
    await $client.unsafe(`explain (analyze, timing off, format json) ${text}`, values as string[]),
  );
}

/** The page accesses of a statement when it runs again. */
export async function pagesRead(db: Database, { text, values }: Asked): Promise<number> {
  const { $client } = db as Database & { $client: Sql };
  const [row] = await $client.unsafe(
    `explain (analyze, buffers, timing off, format json) ${text}`,
    values as string[],
  );
  const { Plan: plan } = row!["QUERY PLAN"][0];
  return Number(plan["Shared Hit Blocks"]) + Number(plan["Shared Read Blocks"]);
}

function rowsIn(plan: unknown): number {
  if (typeof plan !== "object" || plan === null) return 0;
  const own = Object.entries(plan)
    .filter(([name]) => name === "Actual Rows" || name.startsWith("Rows Removed"))
    .reduce((sum, [, rows]) => sum + Number(rows), 0);
  const loops = "Actual Loops" in plan ? Number(plan["Actual Loops"]) : 1;
  return Object.values(plan).reduce<number>((sum, part) => sum + rowsIn(part), own * loops);
}

function listenTo(db: Database, note: (asked: Asked) => void): void {
  const { $client } = db as Database & { $client: Sql };
  const listen = (client: Ask) => {
    const ask = client.unsafe;
    client.unsafe = ((text: string, values: unknown[] = [], ...rest: []) => {
      if (text !== hintStatement) note({ text, values });
      return ask(text, values as [], ...rest);
    }) as Ask["unsafe"];
  };
  listen($client);
  changeTransactions($client, listen);
}
