import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../platform/free_port.ts";
import { startCollector } from "../../tests/support/collector.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { appFolder } from "../../tests/support/http/serving.ts";
import { until } from "../../tests/support/process/until.ts";
import { Worker } from "./worker.ts";

const hour = 3_600_000;
const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());

/** Writes a module, and returns the arguments for a worker that serves it. */
function serving(name: string, content: string): string[] {
  writeFileSync(join(folder.path, `${name}.ts`), content);
  return [
    "server",
    "start",
    `${join(folder.path, name)}:app`,
    "--uds",
    join(folder.path, name),
    "--supervised",
  ];
}

test("does not wait for a worker that has exited", async () => {
  const worker = new Worker({ args: ["--version"] });
  const asked = worker.metrics(hour);
  await worker.ended;
  expect([await asked, await worker.metrics(hour)]).toEqual([undefined, undefined]);
});

test("a worker asked for metrics until the end exits cleanly", async () => {
  await using database = await createTestDatabase();
  const { promise: never } = Promise.withResolvers<Response>();
  // The worker must wait for it at the end.
  using collector = startCollector(() => never);
  const port = await freePort();
  const words: string[] = [];
  const worker = new Worker({
    onLine: (line) => words.push(line),
    args: ["server", "start", "server/main:app", `--port=${port}`, "--supervised"],
    environment: {
      SVC_DATABASE_URL: database.url,
      SVC_OIDC_ISSUER: "http://127.0.0.1:1",
      METRIC_PROVIDERS: "prometheus,otlp",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
    },
  });
  expect(await worker.ready).toBe(true);
  expect(await worker.metrics(hour)).toContain("process_cpu_seconds_total");
  let ended = false;
  const stopped = worker.stop(60_000).then(() => {
    ended = true;
  });
  while (!ended) await worker.metrics(20);
  await stopped;
  expect(await worker.ended).toBe("ended with exit code 0");
  expect(words.filter((line) => line.includes("rror"))).toEqual([]);
});

test("a worker that closed its channel but keeps running gets no more orders, and is killed", async () => {
  const content = `
    process.removeAllListeners("disconnect");
    process.disconnect();
    console.log("deaf");
    await new Promise(() => setInterval(() => {}, 1000));
  `;
  const words: string[] = [];
  const worker = new Worker({ args: serving("deaf", content), onLine: (line) => words.push(line) });
  await until("it to be deaf", () => words.includes("deaf"));
  worker.order("leave");
  expect(await worker.metrics(1)).toBeUndefined();
  await worker.stop(10);
  expect(await worker.ended).toBe("was killed by SIGKILL");
});
