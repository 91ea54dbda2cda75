import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openSql, type Sql } from "../../drizzle/client.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { openSpoiltWay } from "../support/database/spoilt_way.ts";
import { until } from "../support/process/until.ts";

setDefaultTimeout(60_000);

let database: TestDatabase;
let sql: Sql;
let workers: Bun.Subprocess[];
beforeEach(async () => {
  workers = [];
  database = await createTestDatabase();
  sql = openSql(database.url, { max: 2 });
  await sql`create table begun (slot timestamptz, pid int)`;
  await sql`create table effect (slot timestamptz, pid int)`;
});
afterEach(async () => {
  for (const worker of workers) worker.kill("SIGKILL");
  await Promise.all(workers.map((worker) => worker.exited));
  await sql.end({ timeout: 5 });
  await database[Symbol.asyncDispose]();
});

/** A worker process with a task of this duration; its clock may be wrong. */
function start(env: { takes?: number; skew?: number; grace?: number; url?: string } = {}) {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "../support/domain/schedule_program.ts")],
    {
      env: {
        PATH: process.env.PATH,
        SVC_DATABASE_URL: env.url ?? database.url,
        SVC_TEST_NOTES_URL: database.url,
        SVC_TEST_TAKES: String(env.takes ?? 0),
        SVC_TEST_SKEW: String(env.skew ?? 0),
        ...(env.grace === undefined ? {} : { SVC_TEST_GRACE: String(env.grace) }),
      },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  workers.push(child);
  let words = "";
  const log = (async () => {
    const decoder = new TextDecoder();
    for await (const piece of child.stderr) words += decoder.decode(piece, { stream: true });
    return words;
  })();
  const says = (text: string) => until(`the worker to say: ${text}`, () => words.includes(text));
  return { child, pid: child.pid, log, says };
}

const runs = () =>
  sql<{ slot: Date; state: string; attempt: number; early: boolean; missed: number }[]>`
    select slot, state, attempt, started_at < slot as early, coalesce((result #>> '{missed_slots,count}')::int, 0) as missed
    from run order by slot`;
const effectsOf = (slot: Date) => sql<{ pid: number }[]>`select pid from effect where slot = ${slot}`;
const pids = async (slot: Date) => (await effectsOf(slot)).map(({ pid }) => pid);
/** The slot that this process has started. */
const begunBy = (pid: number) =>
  until(
    "a run to begin",
    async () => (await sql<{ slot: Date }[]>`select slot from begun where pid = ${pid}`)[0]?.slot,
  );

describe("three workers, one of them five minutes ahead and one behind", () => {
  test("run each slot once, and skip none", async () => {
    for (const skew of [-300, 0, 300]) start({ skew });
    await until("some runs", async () => (await runs()).length >= 7);
    for (const worker of workers) worker.kill("SIGTERM");
    expect(await Promise.all(workers.map((worker) => worker.exited))).toEqual([0, 0, 0]);
    const all = await runs();
    // On a busy machine, a slot may be missed, which the next run stands for.
    for (const [i, { slot, missed }] of all.entries()) {
      const before = all[i - 1]?.slot ?? slot;
      expect((slot.getTime() - before.getTime()) / 1000).toBe(i === 0 ? 0 : 1 + missed);
    }
    for (const { slot, state, early } of all)
      expect({ state, early, effects: (await pids(slot)).length }).toEqual({
        state: "Done",
        early: false,
        effects: 1,
      });
    expect(await sql`select from worker`).toHaveLength(0);
  });
});

test("after kill -9 in a run, another worker runs that slot when the lease has expired", async () => {
  const victim = start({ takes: 30_000 });
  const slot = await begunBy(victim.pid);
  const heir = start();
  victim.child.kill("SIGKILL");
  expect(await until("the run to be done", async () => (await pids(slot))[0])).toBe(heir.pid);
  await until("its end", async () => (await runs())[0]?.state === "Done");
  expect((await runs())[0]).toMatchObject({ slot, attempt: 2 });
  expect(await pids(slot)).toEqual([heir.pid]);
});

test("a worker that was frozen during a run changes nothing when it resumes", async () => {
  const frozen = start({ takes: 500 });
  const slot = await begunBy(frozen.pid);
  frozen.child.kill("SIGSTOP");
  const heir = start();
  await until("the run to be taken over", async () => (await pids(slot)).length > 0);
  frozen.child.kill("SIGCONT");
  frozen.child.kill("SIGTERM");
  await frozen.child.exited;
  expect(await frozen.log).toContain("run lost to another worker");
  expect(await pids(slot)).toEqual([heir.pid]);
});

describe("SIGTERM", () => {
  test("lets the run finish, and claims nothing more", async () => {
    const { child, pid } = start({ takes: 1500 });
    const slot = await begunBy(pid);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    expect(await runs()).toMatchObject([{ slot, state: "Done" }]);
    expect(await pids(slot)).toEqual([pid]);
  });

  test("gives back unfinished work, and another worker continues immediately", async () => {
    const { child, pid } = start({ takes: 60_000, grace: 300 });
    const slot = await begunBy(pid);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    const [given] = await sql`select state, lease_until <= now() as ended from run where slot = ${slot}`;
    expect(given).toEqual({ state: "Running", ended: true });
    const heir = start();
    expect(await until("the run to be done", async () => (await pids(slot))[0])).toBe(heir.pid);
  });
});

test("without the database, a worker retries until it is back, and logs each change once", async () => {
  const { child, pid, log, says } = start();
  await begunBy(pid);
  const name = new URL(database.url).pathname.slice(1);
  const cut = new URL(database.url);
  cut.pathname = "/postgres";
  const admin = openSql(cut.href, { max: 1 });
  await admin.unsafe(`alter database ${name} allow_connections false`);
  await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
  await says("the database is unavailable");
  await admin.unsafe(`alter database ${name} allow_connections true`);
  const back = new Date();
  await until("a run behind it", async () => {
    const [last] = await runs().then((all) => all.slice(-1));
    return last && last.slot > back;
  });
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  const lines = (await log).split("\n");
  expect(lines.filter((line) => line.includes("the database is unavailable"))).toHaveLength(1);
  expect(lines.filter((line) => line.includes("the database answers again"))).toHaveLength(1);
  await admin.end();
});

test("connections that no longer answer are replaced", async () => {
  const way = await openSpoiltWay(database.url);
  const { pid } = start({ url: way.url });
  await begunBy(pid);
  way.silence();
  const cut = new Date();
  await until("a run behind it", async () => (await runs()).some(({ slot }) => slot > cut), 40);
  way.close();
});

test("a worker with a read-only database after a failover finds the new primary", async () => {
  const way = await openSpoiltWay(database.url);
  const { pid, says } = start({ url: way.url });
  await begunBy(pid);
  const name = new URL(database.url).pathname.slice(1);
  // Only for new connections; existing ones are unchanged.
  await sql`alter database ${sql(name)} set default_transaction_read_only = on`;
  way.cut();
  await says("run this against the primary");
  await sql`alter database ${sql(name)} set default_transaction_read_only = off`;
  const back = new Date();
  await until("a run behind it", async () => (await runs()).some(({ slot }) => slot > back), 40);
  way.close();
});
