import { expect, test } from "bun:test";
import { serveHealth, WorkerHealth } from "./health.ts";

test("a worker is ready while its heartbeat succeeds, and alive while its loop runs", () => {
  let now = 0;
  const health = new WorkerHealth(() => now * 1000);
  const told = () => {
    const { ready, alive, body } = health.report();
    return [ready, alive, ...Object.values(body)];
  };
  // It waits for its database indefinitely.
  now = 1000;
  expect(told()).toEqual([false, true, "starting", "unknown", null]);
  health.asks();
  expect(told()).toEqual([false, true, "ok", "unknown", null]);
  health.answered();
  now += 30;
  expect(told()).toEqual([true, true, "ok", "ok", 30]);
  now += 1;
  expect(told()).toEqual([false, true, "ok", "unreachable", 31]);
  now += 29;
  expect(told()).toEqual([false, true, "ok", "unreachable", 60]);
  now += 1;
  expect(told()).toEqual([false, false, "stuck", "unreachable", 61]);
  // It keeps asking while the database is unavailable.
  health.asks();
  expect(told()).toEqual([false, true, "ok", "unreachable", 61]);
  health.answered();
  expect(told()).toEqual([true, true, "ok", "ok", 0]);
});

test("it serves two paths only", async () => {
  const health = new WorkerHealth();
  const endpoint = serveHealth({ host: "127.0.0.1", port: 0 }, health);
  const statuses = async () =>
    await Promise.all(
      ["healthcheck", "live", "metrics"].map(
        async (path) => (await fetch(new URL(path, endpoint.address))).status,
      ),
    );
  expect(await statuses()).toEqual([503, 200, 404]);
  health.asks();
  health.answered();
  expect(await statuses()).toEqual([200, 200, 404]);
  const port = Number(new URL(endpoint.address).port);
  expect(() => serveHealth({ host: "127.0.0.1", port }, health)).toThrow(
    `--health-port: port ${port} of 127.0.0.1 is taken`,
  );
  await endpoint.stop();
});
