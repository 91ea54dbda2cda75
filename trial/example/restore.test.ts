import { expect, test } from "bun:test";
import { TestClock } from "../../tests/support/clock.ts";
import { contentOf, using } from "../../tests/support/database/backup.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { restoreExample } from "./restore.ts";

const clock = new TestClock();
const confirm = async () => {};

test("a stop after loading but before the commit leaves the database as it was", async () => {
  await using database = await createTestDatabase();
  const { url } = database;
  await using(url, (sql) => sql`insert into audit_log (at, actor, action) values (now(), 'x', 'y')`);
  const before = await contentOf(url);
  const stop = new AbortController();
  const progress = ({ doing }: { doing: string }) => {
    if (doing === "loading the example") stop.abort(new Error("stopped"));
  };
  const { signal } = stop;
  await expect(restoreExample({ url, confirm, clock, signal, progress })).rejects.toThrow("stopped");
  expect(await contentOf(url)).toEqual(before);
});

test("publications keep the tables that are replaced", async () => {
  await using database = await createTestDatabase();
  const { url } = database;
  await using(url, (sql) => sql`create publication reports for table incident, event`);
  const published = () => using(url, (sql) => sql`select * from pg_publication_tables order by tablename`);
  const before = await published();
  const notices: string[] = [];
  await restoreExample({ url, confirm, clock, notice: (message) => notices.push(message) });
  expect(before).toHaveLength(2);
  expect(await published()).toEqual(before);
  expect(notices).toEqual([
    "the subscribers of the publication reports still have the rows from before: subscribe them again",
  ]);
});

test("a missing database is created, and its example ends at the clock's time", async () => {
  await using database = await createTestDatabase();
  const url = `${database.url}_new`;
  const exists = () =>
    using(
      database.url,
      (sql) => sql`select from pg_database where datname = ${new URL(url).pathname.slice(1)}`,
    );
  const stopped = AbortSignal.abort(new Error("stopped"));
  await expect(restoreExample({ url, confirm, clock, signal: stopped })).rejects.toThrow("stopped");
  expect(await exists()).toHaveLength(0);
  try {
    await restoreExample({ url, confirm, clock });
    const [row] = await using(url, (sql) => sql`select max(at) <= ${clock.now()} as past from event`);
    expect(row?.past).toBe(true);
  } finally {
    await using(database.url, (sql) => sql`drop database if exists ${sql(new URL(url).pathname.slice(1))}`);
  }
});

test("an unreachable server gives one line without the password", async () => {
  const url = "postgres://svc:hunter2@127.0.0.1:1/svc";
  await expect(restoreExample({ url, confirm, clock })).rejects.toMatchObject({
    code: "unavailable",
    detail:
      "PostgreSQL at 127.0.0.1:1, database svc, does not answer: connection refused (see SVC_DATABASE_URL)",
  });
});
