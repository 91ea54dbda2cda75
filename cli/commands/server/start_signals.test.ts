import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawnSvc } from "../../../tests/support/cli/process.ts";
import { appFolder, startServing } from "../../../tests/support/http/serving.ts";
import { descendants } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

/** Signals that reach more processes than intended. */

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());
const start = (...args: string[]) => startServing(folder.path, args, { detached: true });

test.each([
  ["SIGTERM", ["--workers", "3"]],
  ["SIGINT", ["--workers", "3"]],
  ["SIGTERM", ["--reload"]],
  ["SIGTERM", []],
] as const)(
  "%s to the whole process group, with %p: current requests are answered, and the exit code is 0",
  async (signal, args) => {
    await using server = await start(...args);
    const asked = Array.from({ length: 12 }, () => server.fetch("/slow?ms=1500", { keepalive: false }));
    await until("all to be under way", () => server.said().split("slow for").length > asked.length);
    process.kill(-server.pid, signal);
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 200));
    expect((await server.finished).code).toBe(0);
  },
);

test("a signal to the group under load cuts off no request; then connections are refused", async () => {
  await using server = await start("--workers", "3");
  let [asked, answered] = [0, 0];
  const failures: { id: string; code: string; keepalive: boolean }[] = [];
  const client = async (keepalive: boolean) => {
    for (;;) {
      asked += 1;
      const id = String(asked);
      try {
        const init = { method: "POST", body: "x", keepalive };
        await (await server.fetch(`/noted?id=${id}`, init)).text();
        answered += 1;
      } catch (error) {
        const { code = String(error) } = error as { code?: string };
        if (code !== "ECONNREFUSED") failures.push({ id, code, keepalive });
        return;
      }
    }
  };
  const clients = Array.from({ length: 12 }, (_, at) => client(at % 2 === 0));
  await until("some answers", () => answered > 100);
  process.kill(-server.pid, "SIGTERM");
  await Promise.all(clients);
  const begun = new Set(readFileSync(join(folder.path, "noted"), "utf8").match(/^\d+/gm));
  // This process may pause so long that a kept connection is closed as idle; a later request on it was not started.
  const cut = failures.filter(({ id, keepalive }) => !keepalive || begun.has(id));
  expect(cut).toEqual([]);
});

test("a worker leaves signals to its supervisor", async () => {
  await using server = await start("--workers", "2");
  const workers = descendants(server.pid).map(({ pid }) => pid);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"] as const)
    for (const pid of workers) process.kill(pid, signal);
  // Long after they have received their signals.
  for (const _ of [1, 2, 3]) expect(workers).toContain((await server.ask("/slow?ms=200")).pid);
  expect(descendants(server.pid).map(({ pid }) => pid)).toEqual(workers);
  expect((await server.end()).code).toBe(0);
});

test("while the application is loading, SIGTERM shuts down gracefully, and other signals do no harm", async () => {
  const waits = 'setInterval(() => {}, 1000); console.error("loading"); await new Promise(() => {});';
  writeFileSync(join(folder.path, "waits.ts"), waits);
  const { child, says, finished } = spawnSvc(
    ["server", "start", "waits:app", "--port", "0"],
    {},
    undefined,
    folder.path,
  );
  await says("loading");
  for (const signal of ["SIGHUP", "SIGUSR2", "SIGTERM"] as const) child.kill(signal);
  expect((await finished).code).toBe(0);
});
