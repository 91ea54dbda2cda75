import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { type DatabaseClient, openDatabase } from "../../drizzle/client.ts";
import { document } from "../../drizzle/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "../../tests/support/database.ts";
import { mayReadOf } from "../incident/visibility.ts";
import { type ListQuery, startPage } from "./page.ts";

const member = { user: "carol@example.com", admin: false };

let database: TestDatabase;
let client: DatabaseClient;
beforeAll(async () => {
  database = await createTestDatabase();
  // One connection: what it has prepared is asked of it.
  client = openDatabase(database.url, 1);
});
afterAll(async () => {
  await client.close();
  await database[Symbol.asyncDispose]();
});

async function read(query: ListQuery, filter?: string): Promise<void> {
  const page = startPage(
    {
      ...{ name: "documents", id: document.id, search: document.search, defaultSort: "id" },
      sorts: { id: { by: document.id, kind: "id" } },
    },
    query,
    { filter },
  );
  const select = client.db
    .select({ item: { id: document.id }, key: page.key })
    .from(document)
    // A statement without parameters is sent as it stands.
    .where(page.within(mayReadOf(member, document.incidentId)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  page.finish(await page.run(select));
}

const prepared = () =>
  client.db.execute<{ statement: string; generic_plans: string }>(sql`
    select statement, generic_plans from pg_prepared_statements where statement like 'select "id"%'`);

test("the plan of the list that everybody reads is kept, and that of no other: there are too many of them", async () => {
  await read({ limit: 7 });
  await read({ q: "disk" });
  await read({}, "given");
  expect(await prepared()).toHaveLength(0);
  for (let nth = 0; nth < 7; nth += 1) await read({});
  const [plan, ...others] = await prepared();
  expect(others).toEqual([]);
  // PostgreSQL makes the first five anew, and keeps the next if it looks no worse.
  expect(Number(plan?.generic_plans)).toBe(2);
});
