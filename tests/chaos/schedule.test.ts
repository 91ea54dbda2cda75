import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openSql, type Sql } from "../../drizzle/client.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { openSpoiltWay } from "../support/database/spoilt_way.ts";
import { until } from "../support/process/until.ts";

// One worker process. tests/chaos/storm.test.ts kills, freezes and cuts off three of them.

setDefaultTimeout(60_000);

let database: TestDatabase;
let sql: Sql;
let worker: Bun.Subprocess | undefined;
beforeEach(async () => {
  database = await createTestDatabase();
  sql = openSql(database.url, { max: 2 });
  await sql`create table begun (slot timestamptz, pid int)`;
  await sql`create table effect (slot timestamptz, pid int)`;
});
afterEach(async () => {
  worker?.kill("SIGKILL");
  await worker?.exited;
  await sql.end({ timeout: 5 });
  await database[Symbol.asyncDispose]();
});

/** Starts a worker with a task of this duration, and waits until a run has begun. */
async function start({ takes = 0, url = database.url }) {
  const program = join(import.meta.dir, "../support/domain/schedule_program.ts");
  const child = Bun.spawn([process.execPath, program], {
    env: {
      PATH: process.env.PATH,
      SVC_DATABASE_URL: url,
      SVC_TEST_NOTES_URL: database.url,
      SVC_TEST_TAKES: String(takes),
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  worker = child;
  let words = "";
  void (async () => {
    for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) words += piece;
  })();
  const begun = () => sql<{ slot: Date }[]>`select slot from begun where pid = ${child.pid}`;
  const slot = await until("a run to begin", async () => (await begun())[0]?.slot);
  return { child, slot, says: (text: string) => until(text, () => words.includes(text)) };
}

test("SIGTERM lets the run finish, and the worker claims nothing more", async () => {
  const { child, slot } = await start({ takes: 1500 });
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect([...(await sql`select slot, state from run`)]).toEqual([{ slot, state: "Done" }]);
  expect([...(await sql`select slot, pid from effect`)]).toEqual([{ slot, pid: child.pid }]);
});

test("a worker with a read-only database after a failover finds the new primary", async () => {
  const way = await openSpoiltWay(database.url);
  const { says } = await start({ url: way.url });
  const name = new URL(database.url).pathname.slice(1);
  // Only for new connections; existing ones are unchanged.
  await sql`alter database ${sql(name)} set default_transaction_read_only = on`;
  way.cut();
  await says("run this against the primary");
  await sql`alter database ${sql(name)} set default_transaction_read_only = off`;
  const back = new Date();
  const later = () => sql`select from run where slot > ${back}`;
  await until("a run after it", async () => (await later()).length > 0);
  way.close();
});
