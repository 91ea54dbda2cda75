import { expect, test } from "bun:test";
import { getConstructionPlans } from "pg-boss";
import { openSql } from "../../drizzle/client.ts";
import { canonicalSchema } from "../../drizzle/revision/canonical.ts";
import { findDrift } from "../../drizzle/revision/check.ts";
import { dropAll } from "../../drizzle/revision/drop.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../tests/support/database/database.ts";

/** What a database has of the schema of pg-boss. */
async function bossSchema(url: string): Promise<string[]> {
  const sql = openSql(url, { max: 1 });
  try {
    const lines = (await canonicalSchema(sql)).split("\n");
    return lines.filter((line) => line.includes("pgboss") && !/queue_stats_\d{8}/.test(line));
  } finally {
    await sql.end();
  }
}

// A new release of pg-boss may ask for another schema. Then it needs a revision: getMigrationPlans says what goes in.
test("the revisions make the very schema that this release of pg-boss would make itself", async () => {
  await using ours = await createTestDatabase();
  await using theirs = await createEmptyTestDatabase();
  const sql = openSql(theirs.url, { max: 1 });
  await sql.unsafe(getConstructionPlans("pgboss"));
  const version = await sql`select version from pgboss.version`;
  await sql.end();
  const withoutSpace = (lines: string[]) => lines.map((line) => line.replaceAll(/\s+/g, " "));
  const expected = withoutSpace(await bossSchema(theirs.url));
  expect(expected.length).toBeGreaterThan(50);
  expect(withoutSpace(await bossSchema(ours.url))).toEqual(expected);
  const own = openSql(ours.url, { max: 1 });
  expect([...(await own`select version from pgboss.version`)]).toEqual([...version]);
  await own.end();
});

test("it drifts no more than the other tables, and is dropped with them", async () => {
  await using database = await createTestDatabase();
  expect(await findDrift(database.url)).toEqual([]);
  await dropAll(database.url);
  const sql = openSql(database.url, { max: 1 });
  expect(await sql`select nspname from pg_namespace where nspname = 'pgboss'`).toHaveLength(0);
  await sql.end();
});

test("dropping names what leans on it from another schema, and then drops nothing", async () => {
  await using database = await createTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  await sql.unsafe("create schema theirs; create view theirs.jobs as select id from pgboss.job");
  await expect(dropAll(database.url)).rejects.toThrow("Nothing was dropped");
  expect(await sql`select from pgboss.version`).toHaveLength(1);
  await sql.end();
});
