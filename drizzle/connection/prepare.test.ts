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
  // A single connection, because prepared statements are per connection.
  client = openDatabase(database.url, 1);
  ({ close } = client);
});
afterAll(() => close());

/** The statements ending in `end` that the connection has prepared. */
async function prepared(end: string): Promise<string[]> {
  const rows = await client.db.execute<{ statement: string }>(
    sql`select statement from pg_prepared_statements where statement like ${`%${end}`} order by statement`,
  );
  return rows.map(({ statement }) => statement);
}

const ask = (db: Pick<Transaction, "execute">, end: string, value = 1) =>
  db.execute<{ is: number }>(sql`select ${value}::int as is ${sql.raw(end)}`);
const inTransaction = (end: string, value?: number) => client.db.transaction((tx) => ask(tx, end, value));

test("statements in transactions are prepared from the second time on, with the same results", async () => {
  await inTransaction("-- twice");
  expect(await prepared("-- twice")).toEqual([]);
  for (const value of [2, 3, 4])
    expect([...(await inTransaction("-- twice", value))]).toEqual([{ is: value }]);
  expect(await prepared("-- twice")).toEqual(["select $1::int as is -- twice"]);
});

test("statements in savepoints are prepared too", async () => {
  const nested = () => client.db.transaction((tx) => tx.transaction((inner) => ask(inner, "-- inner")));
  await nested();
  await nested();
  expect(await prepared("-- inner")).toHaveLength(1);
});

test("statements outside transactions are not prepared", async () => {
  for (let nth = 0; nth < 3; nth += 1) await ask(client.db, "-- outside");
  expect(await prepared("-- outside")).toEqual([]);
});

test("long statements, which carry rows, are not prepared", async () => {
  const long = `-- ${"x".repeat(10_000)}long`;
  for (let nth = 0; nth < 3; nth += 1) await inTransaction(long);
  expect(await prepared("long")).toEqual([]);
});

test("of statements that differ only in their number of values, only a few are prepared", async () => {
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

test("the number of prepared statements per connection is limited", async () => {
  await client.db.transaction(async (tx) => {
    for (let nth = 0; nth < 400; nth += 1) {
      await ask(tx, `-- ${nth} many`);
      await ask(tx, `-- ${nth} many`);
    }
  });
  expect(await prepared("many")).toHaveLength(300);
});

test("a statement seen once is forgotten after a thousand others", async () => {
  await inTransaction("-- seldom");
  await client.db.transaction(async (tx) => {
    for (let nth = 0; nth < 1000; nth += 1) await ask(tx, `-- ${nth} once`);
  });
  await inTransaction("-- seldom");
  expect(await prepared("-- seldom")).toEqual([]);
});
