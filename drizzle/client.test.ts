import { expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { createTestDatabase } from "../tests/support/database/database.ts";
import { until, within } from "../tests/support/process/until.ts";
import { openDatabase, openSql } from "./client.ts";
import { team } from "./schema/index.ts";

test("light traffic does not keep the connections of a peak, which other processes may need", async () => {
  await using database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 4, undefined, { limitSeconds: 1 });
  const ask = (seconds: number) => db.execute(sql.raw(`select pg_sleep(${seconds})`));
  const count = async () => {
    const [row] = await db.execute(sql`select count(*)::int as open from pg_stat_activity
      where datname = current_database() and application_name = 'svc'`);
    return row?.open;
  };
  await Promise.all([ask(0.2), ask(0.2), ask(0.2), ask(0.2)]);
  expect(await count()).toBe(4);
  await until("the others to be closed", async () => (await count()) === 1);
  await close();
});

test("quick statements are not sent on the connection of a slow one", async () => {
  await using database = await createTestDatabase();
  const other = openSql(database.url, { max: 1 });
  await other`select pg_advisory_lock(42)`;
  const { db, close } = openDatabase(database.url, 2);
  const quick = () => db.select().from(team).where(eq(team.id, 1));
  await Promise.all([quick(), quick()]);
  const slow = db.execute(sql`select pg_advisory_lock(${42})`).then(() => {});
  await within("the quick ones", Promise.all(Array.from({ length: 6 }, quick)));
  await other.end();
  await slow;
  await close();
});

test("settings of the database and the role hide no table and change no transaction", async () => {
  await using database = await createTestDatabase();
  const admin = openSql(database.url, { max: 1 });
  const [{ name }] = await admin<[{ name: string }]>`select current_database() as name`;
  const role = `${name}_user`;
  await admin.unsafe(`
    create schema other;
    create table other.team (nothing int);
    alter database ${name} set search_path = other;
    alter database ${name} set default_transaction_isolation = serializable;
    create role ${role} superuser login password 'secret';
    alter role ${role} in database ${name} set search_path = '';
    alter role ${role} in database ${name} set default_transaction_isolation = 'repeatable read';
    alter role ${role} in database ${name} set statement_timeout = '70s'`);
  const asRole = Object.assign(new URL(database.url), { username: role, password: "secret" }).href;
  for (const url of [database.url, asRole]) {
    const { db, close } = openDatabase(url, 1);
    expect(await db.select().from(team)).toEqual([]);
    const [row] = await db.transaction((tx) =>
      tx.execute(sql`select current_setting('transaction_isolation') as isolation,
        current_setting('statement_timeout') as limit`),
    );
    // A time limit is the operator's to set.
    expect(row).toEqual({ isolation: "read committed", limit: url === asRole ? "70s" : "0" });
    await close();
  }
  await admin.unsafe(`drop owned by ${role}; drop role ${role}`);
  await admin.end();
});
