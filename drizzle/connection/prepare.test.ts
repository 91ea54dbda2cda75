import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createTestDatabase, type TestDatabase } from "../../tests/support/database/database.ts";
import { type DatabaseClient, openDatabase, type Transaction } from "../client.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

let client: DatabaseClient;
let close: () => Promise<void> = async () => {};
beforeEach(async () => {
  await close();
  // One connection: what it has prepared is asked of it.
  client = openDatabase(database.url, 1);
  ({ close } = client);
});
afterAll(() => close());

/** Of the statements that end like this, those that the connection has prepared. */
async function prepared(end: string): Promise<string[]> {
  const rows = await client.db.execute<{ statement: string }>(
    sql`select statement from pg_prepared_statements where statement like ${`%${end}`} order by statement`,
  );
  return rows.map(({ statement }) => statement);
}

const ask = (db: Pick<Transaction, "execute">, end: string, value = 1) =>
  db.execute<{ is: number }>(sql`select ${value}::int as is ${sql.raw(end)}`);
const inTransaction = (end: string, value?: number) => client.db.transaction((tx) => ask(tx, end, value));

test("what is asked in transactions is prepared from the second time on, and answers the same", async () => {
  await inTransaction("-- twice");
  expect(await prepared("-- twice")).toEqual([]);
  for (const value of [2, 3, 4])
    expect([...(await inTransaction("-- twice", value))]).toEqual([{ is: value }]);
  expect(await prepared("-- twice")).toEqual(["select $1::int as is -- twice"]);
});

test("also within a savepoint", async () => {
  const nested = () => client.db.transaction((tx) => tx.transaction((inner) => ask(inner, "-- inner")));
  await nested();
  await nested();
  expect(await prepared("-- inner")).toHaveLength(1);
});

test("not what is asked outside of them", async () => {
  for (let nth = 0; nth < 3; nth += 1) await ask(client.db, "-- outside");
  expect(await prepared("-- outside")).toEqual([]);
});

test("not what carries rows", async () => {
  const long = `-- ${"x".repeat(10_000)}long`;
  for (let nth = 0; nth < 3; nth += 1) await inTransaction(long);
  expect(await prepared("long")).toEqual([]);
});

test("of those that differ in how many values they hold, a few: the others' places are not theirs", async () => {
  await client.db.transaction(async (tx) => {
    for (let count = 1; count <= 40; count += 1) {
      const values = sql.join(
        Array.from({ length: count }, (_, at) => sql`${String(at)}`),
        sql`, `,
      );
      for (const _ of [1, 2]) await tx.execute(sql`select 1 where '1' in (${values}) -- lists`);
    }
  });
  expect(await prepared("lists")).toHaveLength(8);
});

test("of different ones, no more than a connection can keep the plans of", async () => {
  await client.db.transaction(async (tx) => {
    for (let nth = 0; nth < 400; nth += 1) {
      await ask(tx, `-- ${nth} many`);
      await ask(tx, `-- ${nth} many`);
    }
  });
  expect(await prepared("many")).toHaveLength(300);
});

test("one that was asked once is forgotten when a thousand others have come since", async () => {
  await inTransaction("-- seldom");
  await client.db.transaction(async (tx) => {
    for (let nth = 0; nth < 1000; nth += 1) await ask(tx, `-- ${nth} once`);
  });
  await inTransaction("-- seldom");
  expect(await prepared("-- seldom")).toEqual([]);
});
