import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { createTestDatabase } from "./database.ts";

test("two test databases are at head and independent", async () => {
  await using one = await createTestDatabase();
  await using two = await createTestDatabase();
  const [first, second] = [openSql(one.url), openSql(two.url)];
  await first`create table only_here (id int)`;
  const [row] =
    await second`select to_regclass('only_here') as found, (select count(*)::int from revision) as revisions`;
  expect(row).toEqual({ found: null, revisions: expect.any(Number) });
  expect(row!.revisions).toBeGreaterThan(0);
  await Promise.all([first.end(), second.end()]);
});

test("a disposed test database is gone", async () => {
  const database = await createTestDatabase();
  const name = new URL(database.url).pathname.slice(1);
  await database[Symbol.asyncDispose]();
  await using other = await createTestDatabase();
  const sql = openSql(other.url, { max: 1 });
  expect(await sql`select from pg_database where datname = ${name}`).toHaveLength(0);
  await sql.end();
});
