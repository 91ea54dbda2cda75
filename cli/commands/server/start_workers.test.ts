import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { svc } from "../../../tests/support/cli/process.ts";
import { Load } from "../../../tests/support/http/load.ts";
import {
  appFolder,
  type Started,
  startOnDescriptor,
  startServing,
} from "../../../tests/support/http/serving.ts";
import { descendants, untilGone } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());
const start = (args: readonly string[], options = {}) => startServing(folder.path, args, options);

const workersOf = ({ pid }: Pick<Started, "pid">) => descendants(pid).map((worker) => worker.pid);

/**
 * Between the requests of each of many clients. Without it, they and the workers fill the processors, and new workers start
 * several times slower. A few clients need none.
 */
const pause = 4;

test("SIGHUP under load replaces every worker, one by one, and no request fails", async () => {
  await using server = await start(["--workers", "3"]);
  const before = workersOf(server);
  expect(before).toHaveLength(3);
  const load = new Load({ port: server.port, clients: 20, pause });
  await until("some answers", () => load.answered > 50);
  for (let round = 0; round < 2; round++) {
    const old = workersOf(server);
    process.kill(server.pid, "SIGHUP");
    // Three workers start one after the other, which takes long on a busy machine.
    const replaced = () => {
      const now = workersOf(server);
      return now.length === 3 && now.every((pid) => !old.includes(pid));
    };
    await until("all replaced", replaced, 75);
  }
  await load.end();
  expect(load.failures).toEqual([]);
  expect((await server.end()).code).toBe(0);
}, 240_000);

test("kill -9 of any of 3 workers under load fails only its own requests, and it is replaced", async () => {
  await using server = await start(["--workers", "3"]);
  const clients = 12;
  // The worker that starts a request records its number.
  const load = new Load({ port: server.port, clients, pause, path: (request) => `/noted?id=${request}` });
  const noted = () => readFileSync(join(folder.path, "noted"), "utf8");
  // A process that does not listen yet does not count as a worker; two must listen, or nobody would answer.
  const allAnswer = () =>
    until(
      "three workers that answer",
      () => {
        const [now, text] = [workersOf(server), noted()];
        return now.length === 3 && now.every((pid) => text.includes(` ${pid}\n`));
      },
      40,
    );
  await until("some answers", () => load.answered > 20);
  for (const victim of workersOf(server)) {
    await allAnswer();
    const failedBefore = load.failures.length;
    process.kill(victim, "SIGKILL");
    await server.says(`worker ${victim} was killed by SIGKILL; starting another in`);
    await allAnswer();
    // Each client has one request at a time, and every request started by another worker was answered.
    expect(load.failures.length - failedBefore).toBeLessThanOrEqual(clients);
    const begun = noted().split("\n");
    const elsewhere = load.failures.slice(failedBefore).filter(({ request }) => {
      const line = begun.find((one) => one.startsWith(`${request} `));
      return line !== undefined && line !== `${request} ${victim}`;
    });
    expect(elsewhere).toEqual([]);
  }
  await load.end();
}, 240_000);

test("the workers exit with the supervisor, even if it is killed", async () => {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    await using server = await start(["--workers", "2"]);
    const workers = descendants(server.pid);
    const { code } = await server.end(signal);
    if (signal !== "SIGKILL") expect(code).toBe(0);
    await untilGone(workers);
  }
});

test("a worker that cannot start is reported once, and no process is left", async () => {
  const { code, stderr } = await svc(
    ["server", "start", "mine:nothing", "--workers", "4", "--port", "0"],
    { SVC_PUBLIC_URL: "http://a" },
    folder.path,
  );
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `svc: Module mine has no "nothing"\nsvc: A worker failed to start: it ended with exit code 1; see its output above\n`,
  });
});

test("if new workers do not start, the old ones continue", async () => {
  const file = join(folder.path, "changes.ts");
  writeFileSync(file, `export { plain as app } from "./mine.ts";`);
  await using server = await start(["--workers", "2"], { app: "changes:app" });
  const old = workersOf(server);
  writeFileSync(file, "export const app = {");
  process.kill(server.pid, "SIGHUP");
  await server.says("the new worker did not start; the old one keeps running");
  expect(workersOf(server)).toEqual(old);
  expect((await server.fetch("/")).status).toBe(200);
  writeFileSync(file, `export { plain as app } from "./mine.ts";`);
  process.kill(server.pid, "SIGHUP");
  await until("all replaced", () => workersOf(server).every((pid) => !old.includes(pid)));
});

test("if new workers hang, the old ones continue", async () => {
  const file = join(folder.path, "hangs.ts");
  writeFileSync(file, `export { plain as app } from "./mine.ts";`);
  // Long enough for the first one on a busy machine.
  await using server = await start(["--workers", "1", "--timeout-start", "10"], { app: "hangs:app" });
  const old = workersOf(server);
  writeFileSync(file, "await new Promise(() => setInterval(() => {}, 1000));");
  process.kill(server.pid, "SIGHUP");
  await server.says("did not answer within 10 s");
  await server.says("the new worker did not start; the old one keeps running");
  expect(workersOf(server)).toEqual(old);
  expect((await server.fetch("/")).status).toBe(200);
});

test("a worker that dies repeatedly is restarted with increasing delays", async () => {
  const file = join(folder.path, "dies.ts");
  writeFileSync(
    file,
    `export const app = { fetch: () => { setTimeout(() => process.exit(3), 1); return new Response("x"); } };`,
  );
  await using server = await start(["--workers", "1"], { app: "dies:app" });
  for (const pause of ["0.1", "0.2", "0.4"]) {
    await until("an answer", () =>
      server.fetch("/").then(
        () => true,
        () => false,
      ),
    );
    await server.says(`ended with exit code 3; starting another in ${pause} s`);
  }
});

test("the options reach the workers", async () => {
  const args = [
    "--header",
    "x-a: two words",
    "--root-path",
    "/svc",
    "--no-access-log",
    "--env-file",
    "w.env",
  ];
  writeFileSync(join(folder.path, "w.env"), "A=file\n");
  await using server = await start(["--workers", "2", ...args]);
  await server.says(`"listening on http://127.0.0.1:${server.port} with 2 workers"`);
  const answer = await server.fetch("/svc/variable?name=SVC_ACCESS_LOG");
  expect([answer.headers.get("x-a"), await answer.text()]).toEqual(["two words", "false"]);
  expect(await (await server.fetch("/variable?name=A")).text()).toBe("file");
});

test("--fd with workers: they share the descriptor, and SIGHUP refuses no connection", async () => {
  await using server = await startOnDescriptor(folder.path, ["--fd", "3", "--workers", "2"]);
  const old = workersOf(server);
  const load = new Load({ port: server.port, clients: 4 });
  process.kill(server.pid, "SIGHUP");
  await until("all replaced", () => {
    const now = workersOf(server);
    return now.length === 2 && now.every((pid) => !old.includes(pid));
  });
  await load.end();
  expect(load.failures).toEqual([]);
  process.kill(server.pid, "SIGTERM");
  expect(await server.exited).toBe(0);
});
