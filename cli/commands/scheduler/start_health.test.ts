import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { populate } from "../../../core/populate/populate.ts";
import { openDatabase, openSql } from "../../../drizzle/client.ts";
import { freePort } from "../../../platform/free_port.ts";
import { spawnSvc, svc } from "../../../tests/support/cli/process.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database/database.ts";
import { until } from "../../../tests/support/process/until.ts";

let database: TestDatabase;
let directory: string;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 1);
  await populate(db);
  await close();
  directory = await mkdtemp(join(tmpdir(), "svc-health-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  await database[Symbol.asyncDispose]();
});

const start = (preload?: string) =>
  spawnSvc(["scheduler", "start", "--health-port", "0"], { SVC_DATABASE_URL: database.url }, preload);
type Worker = ReturnType<typeof start>;

async function addressOf(worker: Worker): Promise<string> {
  await worker.says('/healthcheck"');
  return worker.said().match(/health at ([^"\s]+)/)![1]!;
}

/** Runs the container's health check. @returns the exit code and the output */
async function probe(address: string): Promise<[number | null, string]> {
  const program = join(import.meta.dir, "../../../deploy/containers/healthcheck.ts");
  const child = Bun.spawn([process.execPath, program, address], { stdout: "pipe", stderr: "ignore" });
  const said = await new Response(child.stdout).text();
  return [await child.exited, said];
}
const healthy = async (address: string) => (await probe(address))[0] === 0;

test("with one of two workers frozen, its own probe fails and the other's passes", async () => {
  const workers = [start(), start()];
  const [first, second] = (await Promise.all(workers.map(addressOf))) as [string, string];
  await until("both to be healthy", async () => (await healthy(first)) && (await healthy(second)));
  workers[0]!.child.kill("SIGSTOP");
  expect((await probe(first))[0]).toBe(1);
  expect((await probe(second))[0]).toBe(0);
  workers[0]!.child.kill("SIGCONT");
  await until("the first to be healthy again", async () => healthy(first));
  for (const worker of workers) worker.child.kill("SIGTERM");
  for (const worker of workers) expect((await worker.finished).code).toBe(0);
}, 60_000);

test("a worker whose statement waits for a locked table exits within 30 s of SIGTERM", async () => {
  const sql = openSql(database.url, { max: 2 });
  await sql.begin(async (transaction) => {
    await transaction`lock table delivery`;
    const worker = start();
    const waiting = () => sql`select from pg_locks where relation = 'delivery'::regclass and not granted`;
    await until("its statement to wait", async () => (await waiting()).length > 0);
    const sent = performance.now();
    worker.child.kill("SIGTERM");
    expect((await worker.finished).code).toBe(0);
    expect(performance.now() - sent).toBeLessThan(32_000);
  });
  await sql.end();
}, 90_000);

test("a worker whose event loop is frozen fails its probe and ends itself, with a line that says so", async () => {
  const preload = join(directory, "freeze.ts");
  // Blocks the event loop like for (;;), but without using the processor.
  const freeze = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";
  await Bun.write(preload, `process.on("SIGUSR1", () => ${freeze});`);
  const worker = start(preload);
  const address = await addressOf(worker);
  await until("it to be healthy", async () => healthy(address));
  worker.child.kill("SIGUSR1");
  expect((await probe(address))[0]).toBe(1);
  // As in `docker stop`, which would otherwise have to wait for its SIGKILL.
  worker.child.kill("SIGTERM");
  const { code, stderr } = await worker.finished;
  expect(code).toBe(1);
  expect(worker.child.signalCode).toBeNull();
  const last = JSON.parse(stderr.trim().split("\n").at(-1)!) as object;
  expect(last).toMatchObject({
    level: 60,
    msg: "the event loop was blocked for 20 s: this process exits",
  });
}, 90_000);

test("a worker that waits for its database is alive but not ready", async () => {
  const port = await freePort();
  const worker = spawnSvc(["scheduler", "start", "--health-port", String(port)], {
    SVC_DATABASE_URL: "postgres://svc@127.0.0.1:1/svc",
  });
  await worker.says("the database is unavailable");
  const url = (path: string) => `http://127.0.0.1:${port}${path}`;
  expect((await fetch(url("/live"))).status).toBe(200);
  expect(await probe(url("/healthcheck"))).toEqual([
    1,
    'HTTP 503: {"loop":"starting","database":"unknown","seconds_since_heartbeat":null}\n',
  ]);
  worker.child.kill("SIGTERM");
  expect((await worker.finished).code).toBe(0);
});

test("a worker whose first heartbeat is slow reports no outage", async () => {
  const sql = openSql(database.url, { max: 1 });
  // Long enough for the other loops to look for work twice.
  await sql`
    create function slow() returns trigger language plpgsql as
      'begin perform pg_sleep(0.5); return new; end'`;
  await sql`create trigger slow before insert on worker for each row execute function slow()`;
  const worker = start();
  const address = await addressOf(worker);
  await until("it to be healthy", async () => healthy(address));
  expect(worker.said()).not.toContain("unavailable");
  worker.child.kill("SIGTERM");
  expect((await worker.finished).code).toBe(0);
  await sql`drop function slow cascade`;
  await sql.end();
}, 60_000);

test("--health-host needs --health-port", async () => {
  const { code, stderr } = await svc(["scheduler", "start", "--health-host", "0.0.0.0"]);
  expect(code).toBe(2);
  expect(stderr).toStartWith("svc: --health-host requires --health-port\n");
});
