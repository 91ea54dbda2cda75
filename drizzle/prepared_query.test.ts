import { beforeAll, expect, test } from "bun:test";
import { and, eq, sql } from "drizzle-orm";
import type { Context } from "../core/context.ts";
import { useDatabase } from "../tests/support/database/database.ts";
import { insertIncident } from "../tests/support/domain/incident.ts";
import type { Database, Transaction } from "./client.ts";
import { preparedQuery } from "./prepared_query.ts";
import { document, incident, incidentType } from "./schema/index.ts";

const client = useDatabase(1);
beforeAll(() => insertIncident(client.db, new Date("2026-12-01T12:00:00.000Z")));

test("a query is built once per database", () => {
  const [one, other] = [{} as Context["db"], {} as Context["db"]];
  let made = 0;
  const query = preparedQuery((db) => {
    made += 1;
    return { db };
  });
  expect(query(one)).toBe(query(one));
  expect(query(other).db).toBe(other);
  expect(query(one).db).toBe(one);
  expect(made).toBe(2);
});

test("a query is built once for all transactions, and sent in each one", async () => {
  let made = 0;
  const query = preparedQuery((db) => {
    made += 1;
    return db
      .select({ here: sql<string>`current_setting('svc.here', true)` })
      .from(incident)
      .prepare("here");
  });
  for (const here of ["a", "b"]) {
    const rows = await client.db.transaction(async (tx) => {
      await tx.execute(sql`select set_config('svc.here', ${here}, true)`);
      return await query(tx).execute();
    });
    expect(rows).toEqual([{ here }]);
  }
  expect(made).toBe(1);
});

const { id, title, stableAt, cost, createdAt } = incident;
const reads = {
  columns: (db: Database | Transaction) => db.select({ id, title, stableAt, cost, createdAt }).from(incident),
  "a table": (db: Database | Transaction) => db.select().from(document),
  "joined records": (db: Database | Transaction) =>
    db
      .select({
        id,
        type: { id: incidentType.id, createdAt: incidentType.createdAt },
        count: sql<number>`count(*) over ()`.mapWith(Number),
        ids: sql<number[]>`array[1, 2]`,
        named: sql<string>`${title}`.as("named"),
      })
      .from(incident)
      .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId)),
  "records that an outer join does not find": (db: Database | Transaction) =>
    db
      .select({ id, document: { id: document.id, name: document.name } })
      .from(incident)
      .leftJoin(document, and(eq(document.incidentId, id), eq(document.name, "none"))),
};

test.each(Object.entries(reads))("a prepared query reads %s as drizzle does", async (name, read) => {
  const rows: unknown = await read(client.db);
  expect(rows).not.toEqual([]);
  const query = preparedQuery((db) => read(db).prepare(name));
  expect<unknown>(await query(client.db).execute()).toEqual(rows);
});
