import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../platform/free_port.ts";
import { spawnSvc } from "../../../tests/support/cli/process.ts";
import { appFolder, startServing } from "../../../tests/support/http/serving.ts";
import { descendants, type Process, untilGone } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

/** Signals to a supervisor while some of its workers are starting or stopping. */

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());
const write = (name: string, content: string) => writeFileSync(join(folder.path, name), content);

const forever = "new Promise(() => setInterval(() => {}, 1000))";
const well = `export { plain as app } from "./mine.ts";`;
/** And no longer handles signals. */
const hangs = `console.error("hangs"); for (;;) Bun.sleepSync(1000);`;

/** A supervisor whose workers run `content` at startup. */
async function starting(name: string, content: string) {
  write(`${name}.ts`, content);
  const port = await freePort();
  const place = ["--port", String(port), "--workers", "1"];
  const started = spawnSvc(["server", "start", `${name}:app`, ...place], {}, undefined, folder.path);
  return {
    ...started,
    [Symbol.asyncDispose]: async () => {
      started.child.kill("SIGKILL");
      await started.finished;
    },
  };
}

const isAmong = (processes: Process[], pid: number) => processes.some((one) => one.pid === pid);

test("SIGTERM while a new worker hangs: the old one stops meanwhile", async () => {
  write("rolls.ts", well);
  await using server = await startServing(
    folder.path,
    ["--workers", "1", "--timeout-graceful-shutdown", "3600"],
    { app: "rolls:app" },
  );
  const old = descendants(server.pid);
  write("rolls.ts", hangs);
  process.kill(server.pid, "SIGHUP");
  await server.says("hangs");
  const [next] = descendants(server.pid).filter(({ pid }) => !isAmong(old, pid));
  process.kill(server.pid, "SIGTERM");
  await untilGone(old);
  expect(descendants(server.pid)).toEqual([next!]);
  process.kill(next!.pid, "SIGKILL");
  expect((await server.finished).code).toBe(0);
});

test("SIGTERM while a new worker hangs: it gets no more time than current requests", async () => {
  const elysia = JSON.stringify(join(import.meta.dir, "../../../node_modules/elysia"));
  write(
    "stays.ts",
    `import { Elysia } from ${elysia}; export const service = { app: new Elysia(), flush: () => ${forever} };`,
  );
  await using server = await startServing(
    folder.path,
    ["--workers", "1", "--timeout-graceful-shutdown", "0"],
    { app: "stays:service" },
  );
  const old = descendants(server.pid);
  write("stays.ts", hangs);
  process.kill(server.pid, "SIGHUP");
  await server.says("hangs");
  const next = descendants(server.pid).filter(({ pid }) => !isAmong(old, pid));
  process.kill(server.pid, "SIGTERM");
  await untilGone(next);
  expect(descendants(server.pid)).toEqual(old);
  expect((await server.finished).code).toBe(0);
});

test("a signal that ends a starting worker and then reaches the supervisor stops the server", async () => {
  // A killed process exists until its parent has waited for it.
  const script = `kill -KILL $1; while kill -0 $1 2>/dev/null; do sleep 0.01; done; kill -TERM $2`;
  // Forked once more by setsid: our own children are killed with us.
  const content = `
    Bun.spawn(["setsid", "sh", "-c", ${JSON.stringify(script)}, "sh", String(process.pid), String(process.ppid)], { detached: true });
    await ${forever};
  `;
  await using server = await starting("group", content);
  expect(await server.finished).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("a worker ended by a signal at the start is reported without an excerpt", async () => {
  await using server = await starting("killed", `process.kill(process.pid, "SIGKILL"); await ${forever};`);
  expect(await server.finished).toEqual({
    code: 1,
    stdout: "",
    stderr: "svc: A worker failed to start: it was killed by SIGKILL\n",
  });
});

test("SIGHUP before the workers are up replaces them when they are", async () => {
  const content = `
    console.error("loads " + process.pid);
    while (!(await Bun.file("go").exists())) await Bun.sleep(10);
    export { plain as app } from "./mine.ts";
  `;
  await using server = await starting("slowly", content);
  await server.says("loads ");
  const [first] = descendants(server.child.pid);
  server.child.kill("SIGHUP");
  // Its message about a later signal shows that it has received this one.
  for (const words of ["workers log at debug", "workers log as configured"]) {
    server.child.kill("SIGUSR2");
    await server.says(words);
  }
  expect(descendants(server.child.pid)).toEqual([first!]);
  write("go", "");
  await server.says("with 1 worker");
  await until("another worker", () => !isAmong(descendants(server.child.pid), first!.pid));
  server.child.kill("SIGTERM");
  expect((await server.finished).code).toBe(0);
});
