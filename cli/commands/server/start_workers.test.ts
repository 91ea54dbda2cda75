import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../../tests/support/e2e_until.ts";
import { descendants, untilGone } from "../../../tests/support/processes.ts";
import { appFolder, type Started, startOnDescriptor, startServing } from "../../../tests/support/serving.ts";
import { wrk } from "../../../tests/support/wrk.ts";
import { svc } from "../../testing/process.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());
const start = (args: readonly string[], options = {}) => startServing(folder.path, args, options);

const workersOf = ({ pid }: Pick<Started, "pid">) => descendants(pid).map((worker) => worker.pid);

/** Clients that keep their connections and ask without a pause, as a browser or a proxy does. */
function load({ port }: Pick<Started, "port">, clients = 20) {
  let stopped = false;
  let answered = 0;
  let slow = 0;
  const failures: string[] = [];
  const client = async (keepAlive: boolean) => {
    while (!stopped) {
      try {
        const began = performance.now();
        const headers: Record<string, string> = keepAlive ? {} : { connection: "close" };
        const response = await fetch(`http://127.0.0.1:${port}/`, { headers, keepalive: keepAlive });
        await response.text();
        if (performance.now() - began > 900) slow += 1;
        if (response.status === 200) answered += 1;
        else failures.push(String(response.status));
      } catch (error) {
        failures.push((error as { code?: string }).code ?? String(error));
      }
    }
  };
  const all = Array.from({ length: clients }, (_, at) => client(at % 2 === 0));
  return {
    failures,
    answered: () => answered,
    /** A connection that has to begin twice takes a second. */
    slow: () => slow,
    stop: async () => {
      stopped = true;
      await Promise.all(all);
    },
  };
}

test("SIGHUP under load replaces every worker, one by one, and no request fails", async () => {
  await using server = await start(["--workers", "3"]);
  const before = workersOf(server);
  expect(before).toHaveLength(3);
  const clients = load(server);
  await until("some answers", () => clients.answered() > 50);
  for (let round = 0; round < 3; round++) {
    const old = workersOf(server);
    process.kill(server.pid, "SIGHUP");
    await until("all replaced", () => {
      const now = workersOf(server);
      return now.length === 3 && now.every((pid) => !old.includes(pid));
    });
  }
  await clients.stop();
  expect(clients.failures).toEqual([]);
  // A busy machine may hold up one or two for reasons of its own.
  expect(clients.slow()).toBeLessThan(3);
  expect((await server.end()).code).toBe(0);
}, 60_000);

test("the same under wrk", async () => {
  await using server = await start(["--workers", "3"]);
  const old = workersOf(server);
  const measured = wrk(server, 5);
  await Bun.sleep(500);
  process.kill(server.pid, "SIGHUP");
  const { requests, failed } = await measured;
  expect(workersOf(server).some((pid) => old.includes(pid))).toBe(false);
  expect(requests).toBeGreaterThan(1000);
  expect(failed).toEqual([]);
}, 60_000);

test("kill -9 of any of 6 workers under load: no request fails but those in flight on it, and another follows", async () => {
  await using server = await start(["--workers", "6"]);
  const clients = load(server, 12);
  for (const victim of workersOf(server)) {
    await until("some answers", () => clients.answered() > 20);
    process.kill(victim, "SIGKILL");
    await server.says(`worker ${victim} was killed by SIGKILL; another one follows in`);
    await until("six workers", () => workersOf(server).length === 6);
    // What was on its connections has failed by now, and nothing else does.
    const failed = clients.failures.length;
    const answered = clients.answered();
    await until("many answers", () => clients.answered() > answered + 300);
    expect(clients.failures.length).toBe(failed);
  }
  await clients.stop();
}, 60_000);

test("the end of the supervisor, even by force, is the end of the workers", async () => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGKILL"] as const) {
    await using server = await start(["--workers", "2"]);
    const workers = descendants(server.pid);
    const { code } = await server.end(signal);
    if (signal !== "SIGKILL") expect(code).toBe(0);
    await untilGone(workers);
  }
});

test("a worker that cannot start: said once, and nothing is left", async () => {
  const { code, stderr } = await svc(
    ["server", "start", "mine:nothing", "--workers", "4", "--port", "0"],
    { SVC_PUBLIC_URL: "http://a" },
    folder.path,
  );
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `svc: Module mine has no "nothing"\nsvc: The first worker did not come up: its own words are above\n`,
  });
});

test("new workers that do not come up leave the old ones alone", async () => {
  const file = join(folder.path, "changes.ts");
  writeFileSync(file, `export { plain as app } from "./mine.ts";`);
  await using server = await start(["--workers", "2"], { app: "changes:app" });
  const old = workersOf(server);
  writeFileSync(file, "export const app = {");
  process.kill(server.pid, "SIGHUP");
  await server.says("the new worker did not come up; the old one goes on");
  expect(workersOf(server)).toEqual(old);
  expect((await server.fetch("/")).status).toBe(200);
  writeFileSync(file, `export { plain as app } from "./mine.ts";`);
  process.kill(server.pid, "SIGHUP");
  await until("all replaced", () => workersOf(server).every((pid) => !old.includes(pid)));
});

test("a worker that dies again and again is started later each time", async () => {
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
    await server.says(`ended with exit code 3; another one follows in ${pause} s`);
  }
});

test("--limit-max-requests: the successor answers before the old one goes", async () => {
  await using server = await start(["--workers", "2", "--limit-max-requests", "40"]);
  const old = workersOf(server);
  const clients = load(server, 4);
  await until("both replaced", () => {
    const now = workersOf(server);
    return now.length >= 2 && now.every((pid) => !old.includes(pid));
  });
  await clients.stop();
  expect(clients.failures).toEqual([]);
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
  const answer = await server.fetch("/svc/variable?name=SVC_ACCESS_LOG");
  expect([answer.headers.get("x-a"), await answer.text()]).toEqual(["two words", "false"]);
  expect(await (await server.fetch("/variable?name=A")).text()).toBe("file");
});

test("--fd with workers: they share the descriptor, and SIGHUP refuses nobody", async () => {
  await using server = await startOnDescriptor(folder.path, ["--fd", "3", "--workers", "2"]);
  const old = workersOf(server);
  const clients = load(server, 4);
  process.kill(server.pid, "SIGHUP");
  await until("all replaced", () => {
    const now = workersOf(server);
    return now.length === 2 && now.every((pid) => !old.includes(pid));
  });
  await clients.stop();
  expect(clients.failures).toEqual([]);
  process.kill(server.pid, "SIGTERM");
  expect(await server.exited).toBe(0);
});
