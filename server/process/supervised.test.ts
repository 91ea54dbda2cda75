import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../platform/free_port.ts";
import { spawnSvc } from "../../tests/support/cli/process.ts";
import { appFolder } from "../../tests/support/http/serving.ts";
import { until } from "../../tests/support/process/until.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());

/** A serving process supervised by this test, without the settings that would end it with us. */
function supervised(app: string, ...args: string[]) {
  const main = join(import.meta.dir, "../../cli/main.ts");
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  const child = Bun.spawn(
    [
      process.execPath,
      main,
      "server",
      "start",
      app,
      "--supervised",
      "--timeout-graceful-shutdown=0",
      ...args,
    ],
    {
      cwd: folder.path,
      env: { PATH: process.env.PATH },
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "json",
      ipc: () => resolve(),
    },
  );
  return { child, ready, [Symbol.dispose]: () => child.kill("SIGKILL") };
}

const forever = "new Promise(() => setInterval(() => {}, 1000))";

test("a process that hangs during startup exits after its supervisor is gone", async () => {
  writeFileSync(join(folder.path, "hangs.ts"), `process.send("hangs"); await ${forever};`);
  using hanging = supervised("hangs:app", "--uds", "hangs.sock");
  await hanging.ready;
  hanging.child.disconnect();
  expect(await hanging.child.exited).toBe(0);
});

test("a process that hangs during shutdown exits after its supervisor is gone", async () => {
  const elysia = JSON.stringify(join(import.meta.dir, "../../node_modules/elysia"));
  writeFileSync(
    join(folder.path, "flushes.ts"),
    `import { Elysia } from ${elysia}; export const service = { app: new Elysia(), flush: () => ${forever} };`,
  );
  using hanging = supervised("flushes:service", "--uds", "flushes.sock");
  await hanging.ready;
  hanging.child.disconnect();
  expect(await hanging.child.exited).toBe(1);
});

test("a process without a supervisor exits cleanly on a signal", async () => {
  const port = await freePort();
  const place = ["--port", String(port), "--supervised"];
  const { child, finished } = spawnSvc(
    ["server", "start", "mine:plain", ...place],
    {},
    undefined,
    folder.path,
  );
  await until("an answer", () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    ),
  );
  child.kill("SIGTERM");
  expect(await finished).toEqual({ code: 0, stdout: "", stderr: "" });
});
