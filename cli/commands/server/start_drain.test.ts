import { expect, test } from "bun:test";
import { type Started, startServing, useOwnServer } from "../../../tests/support/http/serving.ts";
import { descendants } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

/** `--timeout-drain`: what balancers and clients see of a stopping server. */

const own = useOwnServer();

const start = (...args: string[]) => own.start(["--timeout-drain", "3", ...args]);

/** The answer on a new connection; undefined if it is refused. */
async function ask({ port }: Started, path: string) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { keepalive: false }).catch(
    () => undefined,
  );
  if (!response) return undefined;
  const { status, headers } = response;
  return { status, connection: headers.get("connection"), text: await response.text() };
}

test.each([[[]], [["--workers", "2"]]])(
  "SIGTERM with %p: keeps serving, the health check answers 503, and each response closes its connection",
  async (args) => {
    await using server = await start(...args);
    expect((await ask(server, "/healthcheck"))?.status).toBe(200);
    const end = server.end("SIGTERM");
    const health = await until("the health check to say so", async () => {
      const answer = await ask(server, "/healthcheck");
      return answer?.connection === "close" && answer;
    });
    expect(health.status).toBe(503);
    expect(JSON.parse(health.text)).toMatchObject({ status: "leaving", database: "ok" });
    expect(await ask(server, "/.well-known/jwks.json")).toMatchObject({ status: 200, connection: "close" });
    expect((await end).code).toBe(0);
    expect(await ask(server, "/healthcheck")).toBeUndefined();
  },
);

test("answers kept and new connections until it stops listening, and cuts off none", async () => {
  await using server = await startServing(own.path, ["--timeout-drain", "1"]);
  let answered = 0;
  const failures: string[] = [];
  const client = async (keepalive: boolean) => {
    for (;;) {
      try {
        const init = { method: "POST", body: "x", keepalive };
        const response = await fetch(`http://127.0.0.1:${server.port}/`, init);
        await response.text();
        answered += 1;
      } catch (error) {
        const { code = String(error) } = error as { code?: string };
        if (code !== "ECONNREFUSED") failures.push(code);
        return;
      }
    }
  };
  const clients = Array.from({ length: 20 }, (_, at) => client(at % 2 === 0));
  await until("some answers", () => answered > 100);
  expect((await server.end("SIGTERM")).code).toBe(0);
  await Promise.all(clients);
  expect(failures).toEqual([]);
});

test("a worker that replaces a dead one during shutdown also reports that it is stopping", async () => {
  await using server = await startServing(own.path, ["--timeout-drain", "3600", "--workers", "1"], {
    app: "server/main:app",
    env: own.env,
  });
  const leaving = async () => (await ask(server, "/healthcheck"))?.status === 503;
  process.kill(server.pid, "SIGTERM");
  await until("the worker to leave", leaving);
  process.kill(descendants(server.pid)[0]!.pid, "SIGKILL");
  await server.says("starting another");
  const first = await until("its successor to answer", () => ask(server, "/healthcheck"));
  // It answers briefly before it receives the signal.
  expect([200, 503]).toContain(first.status);
  await until("the successor to leave", leaving);
});

test("a worker that has just died does not delay the shutdown", async () => {
  await using server = await start("--workers", "2");
  process.kill(descendants(server.pid)[0]!.pid, "SIGKILL");
  await server.says("was killed by SIGKILL");
  expect((await server.end("SIGTERM")).code).toBe(0);
});

test("a second signal that is not an echo of the first exits immediately", async () => {
  await using server = await startServing(own.path, ["--timeout-drain", "3600"]);
  process.kill(server.pid, "SIGINT");
  await until(
    "an answer that ends its connection",
    async () => (await ask(server, "/"))?.connection === "close",
  );
  let ended = false;
  const end = server.finished.finally(() => {
    ended = true;
  });
  await until("its end", () => {
    void server.end("SIGINT");
    return ended;
  });
  expect((await end).code).not.toBe(0);
});
