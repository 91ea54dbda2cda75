import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import {
  createTestDatabase,
  type TestDatabase,
  testServerUrl,
} from "../../tests/support/database/database.ts";
import { openSpoiltWay } from "../../tests/support/database/spoilt_way.ts";
import { until, within } from "../../tests/support/process/until.ts";
import {
  type Database,
  type DatabaseClient,
  openDatabase,
  openSql,
  type Sql,
  type Transaction,
} from "../client.ts";
import { transience } from "../database_error.ts";
import { incidentType } from "../schema/index.ts";

// Each of these used to end the process, or left behind a connection that never answered again. An uncaught exception
// fails the test that runs at the time.

let database: TestDatabase;
let client: DatabaseClient;
let admin: Sql;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  admin = openSql(database.url, { max: 1 });
});
beforeEach(async () => {
  await client?.close();
  // One connection, so that the next statement meets whatever state is left.
  client = openDatabase(database.url, 1);
  db = client.db;
});
afterAll(async () => {
  await client.close();
  await admin.end({ timeout: 5 });
  await database[Symbol.asyncDispose]();
});

const pidOf = async (tx: Transaction): Promise<number> => {
  const [row] = await tx.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  return row!.pid;
};
const gone = (pid: number) =>
  until(
    "the end of the backend",
    async () => (await admin`select from pg_stat_activity where pid = ${pid}`).length === 0,
  );
const untilRunning = (statement: string) =>
  until(
    "the statement",
    async () => (await admin`select from pg_stat_activity where query = ${statement}`).length === 1,
  );
const end = async (pid: number) => {
  await admin`select pg_terminate_backend(${pid})`;
  await gone(pid);
  // Leaves time for the client to notice.
  await Bun.sleep(50);
};
const stamps = { createdAt: new Date(), updatedAt: new Date() };
const insert = (tx: Transaction, name: string) => tx.insert(incidentType).values({ name, ...stamps });

/** Checks that later statements are answered, and that the lost transaction left nothing. */
async function expectUsable(): Promise<void> {
  const answers = await Promise.all([1, 2, 3].map((n) => db.execute(sql`select ${n}::int as n`)));
  expect(answers.map(([row]) => row?.n)).toEqual([1, 2, 3]);
  await db.transaction(async (tx) => {
    await insert(tx, "after");
    expect(await tx.select().from(incidentType)).toHaveLength(1);
    await tx.delete(incidentType);
  });
}

const lost = { code: "CONNECTION_CLOSED" };

test("a connection that ends during a statement", async () => {
  const running = db.transaction(async (tx) => {
    await insert(tx, "lost");
    const pid = await pidOf(tx);
    void Bun.sleep(100).then(() => admin`select pg_terminate_backend(${pid})`.execute());
    await tx.execute(sql`select pg_sleep(60)`);
  });
  await expect(running).rejects.toMatchObject(lost);
  await expectUsable();
});

test("a connection that ends between two statements", async () => {
  const running = db.transaction(async (tx) => {
    await insert(tx, "lost");
    await end(await pidOf(tx));
    await tx.select().from(incidentType);
  });
  await expect(running).rejects.toMatchObject(lost);
  await expectUsable();
});

test("a connection that ends before the commit", async () => {
  const running = db.transaction(async (tx) => {
    await insert(tx, "lost");
    await end(await pidOf(tx));
  });
  await expect(running).rejects.toMatchObject(lost);
  await expectUsable();
});

test("a connection that ends before the work itself throws", async () => {
  const running = db.transaction(async (tx) => {
    await end(await pidOf(tx));
    throw new Error("our own");
  });
  await expect(running).rejects.toMatchObject(lost);
  await expectUsable();
});

test("a connection that ends within a savepoint, and before one", async () => {
  const within = db.transaction(async (tx) => {
    await tx.transaction(async (inner) => {
      await end(await pidOf(inner));
      await insert(inner, "lost");
    });
  });
  await expect(within).rejects.toMatchObject(lost);
  await expectUsable();
  const before = db.transaction(async (tx) => {
    await end(await pidOf(tx));
    await tx.transaction((inner) => insert(inner, "lost"));
  });
  await expect(before).rejects.toMatchObject(lost);
  await expectUsable();
});

test("a fatal error on another connection used by the work does not lose this one", async () => {
  const other = openDatabase(database.url.replace(/\/[^/]*$/, "/no_such_database"), 1);
  const running = db.transaction(async (tx) => {
    await insert(tx, "rolled back");
    await other.db.execute(sql`select`);
  });
  await expect(running).rejects.toMatchObject({ cause: { severity: "FATAL" } });
  await expectUsable();
  await other.close();
});

test("a failing transaction is rolled back, and so is a savepoint by itself", async () => {
  const failing = db.transaction(async (tx) => {
    await insert(tx, "a");
    await tx.execute(sql`select 1 / 0`);
  });
  await expect(failing).rejects.toThrow();
  await db.transaction(async (tx) => {
    await insert(tx, "kept");
    await tx
      .transaction(async (inner) => {
        await insert(inner, "dropped");
        throw new Error("not this one");
      })
      .catch(() => {});
  });
  expect((await db.select().from(incidentType)).map(({ name }) => name)).toEqual(["kept"]);
  await db.delete(incidentType).where(eq(incidentType.name, "kept"));
});

test("a connection that is refused after a lost one is not reported again later", async () => {
  using way = await openSpoiltWay(database.url);
  const other = openDatabase(way.url, 1);
  // PostgreSQL does not let a database refuse connections while connected to it.
  const server = openSql(await testServerUrl(), { max: 1 });
  const name = new URL(database.url).pathname.slice(1);
  const allow = (isAllowed: boolean) =>
    server.unsafe(`alter database ${name} allow_connections ${isAllowed}`).execute();
  const running = other.db.execute(sql`select pg_sleep(61)`).catch(() => "lost");
  await untilRunning("select pg_sleep(61)");
  await allow(false);
  way.cut();
  expect(await running).toBe("lost");
  const ask = async () => [...(await other.db.execute(sql`select 1 as n`))];
  const refused = await ask().catch((error: unknown) => error);
  await allow(true);
  expect(refused).toMatchObject({ cause: { code: "55000", severity: "FATAL" } });
  expect(await ask()).toEqual([{ n: 1 }]);
  await other.close();
  await server.end();
});

test("a transaction whose connection ends together with the answer to its BEGIN is rejected", async () => {
  using way = await openSpoiltWay(database.url);
  const other = openDatabase(way.url, 1);
  await other.db.execute(sql`select 1`);
  // The tag of the answer.
  way.endWith("BEGIN\0");
  const running = other.db.transaction((tx) => tx.execute(sql`select 1`));
  const error = await within("the transaction", running).catch((error: unknown) => error);
  expect(transience(error)).toBe("outage");
  expect([...(await other.db.execute(sql`select 2 as n`))]).toEqual([{ n: 2 }]);
  await other.close();
});

test("a query right after one whose connection was reset is answered, on another connection", async () => {
  using way = await openSpoiltWay(database.url);
  way.resetAt("'reset here'");
  const other = openDatabase(way.url, 1);
  await other.db.execute(sql`select 1`);
  const answer = await other.db
    .execute(sql`select 'reset here'`)
    .catch(() => other.db.execute(sql`select 2 as n`));
  expect(answer.map(({ n }) => n)).toEqual([2]);
  await other.close();
});

test("a connection that is reset does not keep the statement that is sent next", async () => {
  const way = await openSpoiltWay(database.url);
  const { db: reset, close } = openDatabase(way.url, 1);
  const ask = async (n: number): Promise<unknown> => (await reset.execute(sql`select ${n}::int as n`))[0]?.n;
  expect(await ask(0)).toBe(0);
  const running = reset.execute(sql`select pg_sleep(60)`).then(
    () => undefined,
    // At once, while the socket is not closed yet.
    (error: unknown) => ({ error, next: ask(1).catch(() => "rejected") }),
  );
  await untilRunning("select pg_sleep(60)");
  way.reset();
  const { error, next } = (await running)!;
  expect(error).toMatchObject({ cause: { code: "ECONNRESET" } });
  const others: Promise<unknown[]> = Promise.all([2, 3, 4].map(ask));
  // Not the answers to the others, either.
  expect<unknown[]>(["rejected", 1]).toContain(await within("the next statement", next));
  expect(await within("the others", others)).toEqual([2, 3, 4]);
  await close(0);
  way.close();
}, 60_000);
