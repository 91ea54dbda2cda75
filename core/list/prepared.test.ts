import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { type DatabaseClient, openDatabase } from "../../drizzle/client.ts";
import { document, incident } from "../../drizzle/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "../../tests/support/database/database.ts";
import { rita } from "../../tests/support/domain/flow.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type AnyReader, mayReadOf, type Reader } from "../incident/visibility/visibility.ts";
import { type ListQuery, startPage } from "./page.ts";

const member = { ...rita, user: "carol@example.com" };

let database: TestDatabase;
let client: DatabaseClient;
beforeAll(async () => {
  database = await createTestDatabase();
  // One connection, because prepared statements are queried per connection.
  client = openDatabase(database.url, 1);
});
afterAll(async () => {
  await client.close();
  await database[Symbol.asyncDispose]();
});

async function read(query: ListQuery, { filter, ...actor }: Partial<Reader> & { filter?: string } = {}) {
  const page = startPage(
    {
      name: "documents",
      id: document.id,
      search: document.search,
      defaultSort: "id",
      sorts: { id: { by: document.id, kind: "id" } },
    },
    query,
    { filter },
  );
  const select = (reader: Reader | AnyReader) => {
    made += 1;
    return (
      client.db
        .select({ item: { id: document.id }, key: page.key })
        .from(document)
        // A statement without parameters is sent as it is.
        .where(page.within(mayReadOf(reader, document.incidentId)))
        .orderBy(...page.orderBy)
        .limit(page.limit)
    );
  };
  return page.finish(await page.run(client.db, { ...member, ...actor }, select));
}
/** How often drizzle built a query. */
let made = 0;

const prepared = () =>
  client.db.execute<{ statement: string; generic_plans: string }>(sql`
    select statement, generic_plans from pg_prepared_statements where statement like 'select "id"%'`);

test("the plan of a list without parameters is kept, and no other: there are too many", async () => {
  await read({ limit: 7 });
  await read({ q: "disk" });
  await read({}, { filter: "given" });
  expect(await prepared()).toHaveLength(0);
  for (let nth = 0; nth < 7; nth += 1) await read({});
  const [plan, ...others] = await prepared();
  expect(others).toEqual([]);
  // PostgreSQL plans the first five executions, and keeps a generic plan if it looks no worse.
  expect(Number(plan?.generic_plans)).toBe(2);
});

test("drizzle builds a first page's SELECT once for members and once for admins", async () => {
  const { incidentId } = await insertIncident(client.db, new Date("2026-12-01T12:00:00Z"));
  await client.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId));
  // Members have read before, so the SELECT for members exists.
  await read({});
  made = 0;
  const shown = async (user: string, admin = false) => (await read({}, { user, admin })).items.length;
  for (let nth = 0; nth < 2; nth += 1) {
    expect(await shown("alice@example.com")).toBe(1);
    expect(await shown("carol@example.com")).toBe(0);
    expect(await shown("carol@example.com", true)).toBe(1);
  }
  expect(made).toBe(1);
});
