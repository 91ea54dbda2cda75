import { afterAll, beforeAll, expect, test } from "bun:test";
import { populate } from "../../../core/populate/populate.ts";
import { scheduledTasks } from "../../../core/schedule/tasks.ts";
import { openDatabase } from "../../../drizzle/client.ts";
import { freePort } from "../../../platform/free_port.ts";
import { spawnSvc, svc } from "../../../tests/support/cli/process.ts";
import { startCollector } from "../../../tests/support/collector.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database/database.ts";
import { parseExposition, valuesOf } from "../../../tests/support/http/exposition.ts";
import { until } from "../../../tests/support/process/until.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 1);
  await populate(db);
  await close();
});
afterAll(() => database[Symbol.asyncDispose]());

const task = "calculate-incident-cost";

test("the worker serves its metrics, including those of runs and the outbox", async () => {
  const port = await freePort();
  const env = {
    SVC_DATABASE_URL: database.url,
    METRIC_PROVIDERS: "prometheus",
    SVC_SCHEDULER_METRICS_PORT: String(port),
  };
  const args = ["scheduler", "start", task, "--eager", "--keep"];
  const worker = spawnSvc(args, env);
  await worker.says(`metrics at http://127.0.0.1:${port}/metrics`);
  const scrape = async () => parseExposition(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  const families = await scrape();
  expect(valuesOf(families, "svc_schedule_runs_total", { task, state: "done" })[0]).toBeGreaterThan(0);
  expect(valuesOf(families, "svc_schedule_lag_seconds")).toHaveLength(scheduledTasks.length);
  expect(valuesOf(families, "svc_schedule_workers")).toEqual([1]);
  expect(valuesOf(families, "svc_deliveries")).toEqual([0, 0]);
  expect(valuesOf(families, "db_client_connection_max")).toEqual([3, 10]);

  // A concurrent process that only runs a task needs no port.
  const eager = ["scheduler", "start", "term-sync", "--eager"];
  expect((await svc(eager, env)).stderr).not.toContain("Port");
  const taken = await svc(["scheduler", "start"], env);
  expect({ code: taken.code, stderr: taken.stderr }).toEqual({
    code: 1,
    stderr: `svc: Cannot serve /metrics on port ${port} of 127.0.0.1, which is taken: choose another one with SVC_SCHEDULER_METRICS_PORT\n`,
  });
  worker.child.kill("SIGTERM");
  expect((await worker.finished).code).toBe(0);
}, 60_000);

test("a run is a span with its statements as children, and the rest is sent at exit", async () => {
  using collector = startCollector();
  const env = {
    SVC_DATABASE_URL: database.url,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
  };
  expect((await svc(["scheduler", "start", task, "--eager"], env)).code).toBe(0);
  const spans = collector.spans();
  const run = spans.find(({ name }) => name === `run ${task}`);
  const statements = spans.filter(({ traceId }) => traceId === run?.traceId);
  expect(statements.map(({ name }) => name)).toContain("SELECT");
  expect(collector.received[0]?.text).toContain('"stringValue":"svc-scheduler"');
});

test("SIGUSR2 switches a worker's log to debug, and back", async () => {
  const worker = spawnSvc(["scheduler", "start", "--log-level", "warn"], { SVC_DATABASE_URL: database.url });
  await worker.says('"msg":"worker for ');
  for (const level of ["debug", "warn"]) {
    worker.child.kill("SIGUSR2");
    await until(level, () => worker.said().includes(`"log_level":"${level}"`));
  }
  worker.child.kill("SIGTERM");
  expect((await worker.finished).code).toBe(0);
});
