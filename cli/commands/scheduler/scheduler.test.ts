import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Keys } from "../../../core/auth/token/keys.ts";
import { readConfig } from "../../../core/config.ts";
import { populate } from "../../../core/populate/populate.ts";
import { scheduledTasks } from "../../../core/schedule/tasks.ts";
import { openDatabase, openSql, type Sql } from "../../../drizzle/client.ts";
import { systemClock } from "../../../platform/clock.ts";
import { createLog } from "../../../platform/log.ts";
import { runHere } from "../../../tests/support/cli/io.ts";
import { spawnSvc, svc } from "../../../tests/support/cli/process.ts";
import {
  createEmptyTestDatabase,
  createTestDatabase,
  type TestDatabase,
} from "../../../tests/support/database/database.ts";
import { insertIncident } from "../../../tests/support/domain/incident.ts";
import { until } from "../../../tests/support/process/until.ts";

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 1);
  await populate(db);
  await close();
  sql = openSql(database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end();
  await database[Symbol.asyncDispose]();
});

const scheduler = (...args: string[]) => runHere(["scheduler", ...args], { SVC_DATABASE_URL: database.url });
/** Runs a task in a process, which ends with it. */
const eager = () =>
  svc(["scheduler", "start", "calculate-incident-cost", "--eager"], { SVC_DATABASE_URL: database.url });
const names = scheduledTasks.map(({ name }) => name).join(", ");

describe("list", () => {
  test("prints the fixed schedule, without a database", async () => {
    expect(await runHere(["scheduler", "list"])).toEqual({
      code: 0,
      stderr: "",
      stdout: `\
Task Name                        Period          At Time
incident-status-report-reminder  1:00:00
incident-daily-summary           1 day, 0:00:00  18:00:00
calculate-incident-cost          0:05:00
incident-task-reminders          1:00:00
incident-task-sync               0:00:30
term-sync                        1:00:00
document-term-sync               1 day, 0:00:00
application-sync                 1:00:00
`,
    });
  });

  test("as JSON", async () => {
    const { stdout } = await runHere(["scheduler", "list", "--json"]);
    expect(JSON.parse(stdout).slice(0, 2)).toEqual([
      { name: "incident-status-report-reminder", period: "1:00:00", at_time: null },
      { name: "incident-daily-summary", period: "1 day, 0:00:00", at_time: "18:00:00" },
    ]);
  });
});

describe("an unknown task is refused with the list of tasks", () => {
  test.each([["start"], ["explain"], ["pause"], ["resume"]])("%s", async (command) => {
    const { code, stdout, stderr } = await runHere(["scheduler", command, "tidy-up"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toStartWith(
      `svc: unknown task: tidy-up. The tasks are ${names}\nUsage: svc scheduler ${command} `,
    );
  });
});

describe("start", () => {
  test("--eager runs a task now, and prints the outcome", async () => {
    const { code, stdout } = await eager();
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "calculate-incident-cost: 0 done, 0 skipped, 0 failed\n",
    });
    const ran = await sql`select state, trigger, attempt from run`;
    expect([...ran]).toEqual([{ state: "Done", trigger: "eager", attempt: 1 }]);
    expect(await sql`select from worker`).toHaveLength(0);
  });

  test("--eager exits with 1 and the reason if the run fails", async () => {
    await sql`delete from cost_formula`;
    const { code, stdout, stderr } = await eager();
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toEndWith(
      "svc: calculate-incident-cost: There is no cost formula: svc database populate\n",
    );
    const { db, close } = openDatabase(database.url, 1);
    await populate(db);
    await close();
  });

  test("--eager exits with 1 if every item failed: documents of a plugin that is no longer chosen", async () => {
    await using own = await createTestDatabase();
    const { db, close } = openDatabase(own.url, 1);
    const { documentId } = await insertIncident(db, new Date());
    await close();
    const run = await svc(["scheduler", "start", "incident-task-sync", "--eager"], {
      SVC_DATABASE_URL: own.url,
      SVC_PLUGIN_DOCUMENT: "none",
    });
    expect(run).toMatchObject({
      code: 1,
      stdout: "incident-task-sync: 0 done, 0 skipped, 1 failed\n",
      stderr: expect.stringContaining(
        `svc: incident-task-sync: Its only item failed: document ${documentId}: Its plugin markdown is no longer chosen: SVC_PLUGIN_DOCUMENT\n`,
      ),
    });
    const { stderr } = await runHere(["scheduler", "status"], { SVC_DATABASE_URL: own.url });
    expect(stderr).toContain("The plugin markdown fails in incident-task-sync since ");
  });

  test("all configuration errors are reported together, before the database is used", async () => {
    const { code, stderr } = await svc(["scheduler", "start"], {
      SVC_DATABASE_URL: "postgres://127.0.0.1:1/",
      SVC_TIMEZONE: "Mars/Olympus",
      SVC_PLUGIN_TERM: "glossaryy",
      SVC_DATABASE_POOL_SIZE: "many",
    });
    expect(code).toBe(1);
    expect([...stderr.matchAll(/\bSVC_[A-Z_]+(?=:)/g)].map(([name]) => name).sort()).toEqual([
      "SVC_DATABASE_POOL_SIZE",
      "SVC_PLUGIN_TERM",
      "SVC_TIMEZONE",
    ]);
  });

  test("--eager needs a task, and --keep needs --eager", async () => {
    expect((await scheduler("start", "--eager")).stderr).toStartWith(
      "svc: --eager needs a task: svc scheduler list\n",
    );
    expect(await scheduler("start", "--keep")).toMatchObject({ code: 2 });
  });

  test("--keep continues with the schedule until SIGTERM", async () => {
    const worker = spawnSvc(["scheduler", "start", "calculate-incident-cost", "--eager", "--keep"], {
      SVC_DATABASE_URL: database.url,
    });
    await worker.says('"msg":"worker for calculate-incident-cost"');
    worker.child.kill("SIGTERM");
    expect(await worker.finished).toMatchObject({
      code: 0,
      stdout: "calculate-incident-cost: 0 done, 0 skipped, 0 failed\n",
    });
  });

  test("a second SIGINT exits immediately, even during a run", async () => {
    const worker = spawnSvc(["scheduler", "start", "calculate-incident-cost", "--eager"], {
      SVC_DATABASE_URL: database.url,
    });
    const { killedBy } = await sql.begin(async (tx) => {
      await tx`lock table incident`;
      const waiting = () => tx`
        select from pg_locks join pg_database on pg_database.oid = database
        where datname = current_database() and not granted`;
      await until("the task to wait for us", async () => (await waiting()).length > 0);
      // A signal within half a second may be an echo of the first.
      await until("its end", () => {
        worker.child.kill("SIGINT");
        return worker.child.exitCode !== null || worker.child.signalCode !== null;
      });
      return { killedBy: worker.child.signalCode };
    });
    expect(killedBy).toBe("SIGINT");
  });

  test("refuses an unsuitable schema, and names the command that fixes it", async () => {
    await using empty = await createEmptyTestDatabase();
    for (const args of [[], ["calculate-incident-cost", "--eager"]]) {
      const { code, stderr } = await svc(["scheduler", "start", ...args], { SVC_DATABASE_URL: empty.url });
      expect(code).toBe(1);
      expect(stderr).toContain("svc: The schema is behind: it is at base");
      expect(stderr).toContain("svc database upgrade");
    }
  });

  test("refuses a key secret that this database has not been used with", async () => {
    await using used = await createTestDatabase();
    const { db, close } = openDatabase(used.url, 1);
    const keySecret = "a-secret-of-more-than-thirty-two-characters";
    const config = readConfig({ SVC_KEY_SECRET: keySecret });
    await new Keys({ db, config, clock: systemClock, log: createLog("silent") }).signing();
    await close();
    const wrong = { SVC_DATABASE_URL: used.url, SVC_KEY_SECRET: keySecret.toUpperCase() };
    for (const what of [["start"], ["start", "term-sync", "--eager"]]) {
      const { code, stdout, stderr } = await svc(["scheduler", ...what], wrong);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/^svc: SVC_KEY_SECRET cannot decrypt signing key \S+: [^\n]+\n$/);
    }
  });

  test("reports a read-only database if a task is to run now", async () => {
    await using replica = await createTestDatabase();
    const own = openSql(replica.url, { max: 1 });
    const { pathname } = new URL(replica.url);
    await own`alter database ${own(pathname.slice(1))} set default_transaction_read_only = on`;
    await own.end();
    const env = { SVC_DATABASE_URL: replica.url };
    expect(await svc(["scheduler", "start", "calculate-incident-cost", "--eager"], env)).toEqual({
      code: 1,
      stdout: "",
      stderr: "svc: This database is read-only (a replica?): run this against the primary\n",
    });
  });

  test("does not wait for a database if a task is to run now", async () => {
    expect((await runHere(["scheduler", "start"])).stderr).toContain("SVC_DATABASE_URL is not set");
    const nobody = { SVC_DATABASE_URL: "postgres://svc:hunter2@127.0.0.1:1/svc" };
    const now = await svc(["scheduler", "start", "calculate-incident-cost", "--eager"], nobody);
    expect(now).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "svc: PostgreSQL at 127.0.0.1:1, database svc, does not answer: connection refused (see SVC_DATABASE_URL)\n",
    });
  });
});

test("status --check reports by its exit code whether a worker is running", async () => {
  const alone = await scheduler("status", "--check");
  expect(alone.code).toBe(1);
  expect(alone.stdout).toContain("Task Name                        State");
  expect(alone.stderr).toBe(
    "No worker is running; start one with svc scheduler start\nsvc: The schedule needs attention: no worker was seen in the last 30 s\n",
  );
  const worker = spawnSvc(["scheduler", "start"], { SVC_DATABASE_URL: database.url });
  await until("a worker", async () => (await sql`select from worker`).length > 0);
  const { code, stdout, stderr } = await scheduler("status", "--check", "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const status = JSON.parse(stdout);
  expect(status.tasks.map((task: { name: string }) => task.name).join(", ")).toBe(names);
  expect(status.workers).toMatchObject([{ pid: worker.child.pid, alive: true }]);
  expect((await scheduler("status")).stderr).toContain(`pid ${worker.child.pid}`);
  worker.child.kill("SIGTERM");
  expect((await worker.finished).code).toBe(0);
});

test("status shows since when a task fails, and --check fails if it keeps failing", async () => {
  await using own = await createTestDatabase();
  const rows = openSql(own.url, { max: 1 });
  await rows`insert into worker (id, host, pid, started_at, seen_at) values (gen_random_uuid(), 'here', 1, now(), now())`;
  const failed = (at: string) => rows`
    insert into run (task, slot, state, trigger, owner, started_at, finished_at, error)
    values ('term-sync', ${at}, 'Failed', 'schedule', 'a', ${at}, ${at}, 'no answer')`;
  const status = () => runHere(["scheduler", "status", "--check"], { SVC_DATABASE_URL: own.url });
  const row = (stdout: string) => stdout.split("\n").find((line) => line.startsWith("term-sync "))!;
  await failed("2026-01-01T01:00:00Z");
  const once = await status();
  expect(once.code).toBe(0);
  expect(once.stdout.split("\n")[0]).toEndWith("Failing Since");
  expect(row(once.stdout)).toEndWith(" 2026-01-01T01:00:00Z");
  await failed("2026-01-01T02:00:00Z");
  const twice = await status();
  expect(twice.code).toBe(1);
  expect(row(twice.stdout)).toEndWith(" 2026-01-01T01:00:00Z");
  expect(twice.stderr).toEndWith(
    "svc: The schedule needs attention: term-sync has failed 2 times since 2026-01-01T01:00:00.000Z\n",
  );
  await rows.end();
});

test("pause, explain, resume", async () => {
  const task = "calculate-incident-cost";
  const answers = async (command: string) => (await scheduler(command, task)).stdout;
  expect(await answers("pause")).toBe(`Paused ${task}\n`);
  expect(await answers("pause")).toBe(`${task} is already paused\n`);
  expect(await answers("explain")).toContain("no slot is claimed until svc scheduler resume");
  expect(await answers("resume")).toBe(`Resumed ${task}\n`);
  expect(await answers("resume")).toBe(`${task} is not paused\n`);
  // Otherwise, a slot may become due now.
  await sql`update scheduled_task set since = now() + interval '1 hour'`;
  const lines = (await answers("explain")).split("\n");
  expect(lines[1]).toBe("Every 0:05:00 since the epoch; of missed slots, only the latest runs");
  expect(lines[2]).toBe("Nothing is due");
  expect(lines.at(-2)).toMatch(/^Next slot: 20\d\d-\d\d-\d\dT\d\d:\d[05]:00Z$/);
});

describe("rewind", () => {
  test("has nothing to do without future runs", async () => {
    await sql`delete from run`;
    await sql`update scheduled_task set since = now()`;
    await sql`delete from worker`;
    const { code, stdout } = await scheduler("rewind");
    expect(code).toBe(0);
    expect(stdout).toStartWith("Nothing to do: no run is ahead of the database's time, 20");
  });

  test("lists what it would delete, and deletes it with --yes", async () => {
    await sql`
      insert into run (task, slot, state, trigger, owner, started_at, finished_at)
      values ('term-sync', '2999-01-01', 'Done', 'schedule', 'a', now(), now())`;
    const asked = await scheduler("rewind");
    expect(asked).toMatchObject({ code: 1, stdout: "" });
    expect(asked.stderr).toContain(
      "This deletes 1 run of future slots, up to 2999-01-01T00:00:00Z, which will run again.",
    );
    expect(asked.stderr).toContain("add --yes");
    expect(await scheduler("rewind", "--yes")).toEqual({
      code: 0,
      stderr: "",
      stdout: "Deleted 1 run of future slots\n",
    });
    expect(await sql`select from run where slot > now()`).toHaveLength(0);
  });
});
