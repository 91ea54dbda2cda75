import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../platform/free_port.ts";
import { createInspectionApp } from "../../../server/inspection.ts";
import { spawnSvc, svc } from "../../../tests/support/cli/process.ts";
import { parseExposition, valuesOf } from "../../../tests/support/http/exposition.ts";
import { exchange } from "../../../tests/support/http/raw_http.ts";
import { type Started, useOwnServer } from "../../../tests/support/http/serving.ts";
import { descendants } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

const own = useOwnServer({ METRIC_PROVIDERS: "prometheus" });

interface Measured extends Started {
  metricsPort: number;
  scrape(): Promise<ReturnType<typeof parseExposition>>;
}

async function start(...args: string[]): Promise<Measured> {
  const metricsPort = await freePort();
  const server = await own.start(args, { SVC_METRICS_PORT: String(metricsPort) });
  return Object.assign(server, {
    metricsPort,
    scrape: async () => parseExposition(await (await metricsAt(metricsPort)).text()),
  });
}

const metricsAt = (port: number, path = "/metrics", method = "GET") =>
  fetch(`http://127.0.0.1:${port}${path}`, { method });

const duration = "http_server_request_duration_seconds_count";
const route = { http_route: "/noauth/v1/:operation/:argument" };

test("/metrics is served on a separate port, and not on the public one", async () => {
  await using server = await start();
  await server.says(`metrics at http://127.0.0.1:${server.metricsPort}/metrics`);
  const answer = await metricsAt(server.metricsPort);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  const statuses = await Promise.all([
    ...["/", "/metrics/", "/healthcheck"].map((path) => metricsAt(server.metricsPort, path)),
    metricsAt(server.metricsPort, "/metrics", "POST"),
    server.fetch("/metrics"),
  ]);
  expect(statuses.map(({ status }) => status)).toEqual([404, 404, 404, 405, 404]);
  expect((await server.end()).code).toBe(0);
  await expect(metricsAt(server.metricsPort)).rejects.toThrow();
});

test("the server's metrics: requests, challenges, connections, the process", async () => {
  await using server = await start();
  await server.fetch("/healthcheck");
  await server.fetch("/whoami");
  const headers = { "content-type": "application/json" };
  await server.fetch("/documents/", { method: "POST", body: "{", headers });
  const generated = await server.fetch("/noauth/v1/challenge_generator/alice@example.com");
  const { polling_url: url } = (await generated.json()) as { polling_url: string };
  // The second poll is answered from memory, before routing.
  for (const _ of [1, 2]) expect((await server.fetch(new URL(url).pathname)).status).toBe(200);
  const families = await server.scrape();
  const requests = (labels: Record<string, string>) => valuesOf(families, duration, labels);
  expect(
    requests({
      http_route: "/healthcheck",
      http_request_method: "GET",
      http_response_status_class: "2xx",
    }),
  ).toEqual([1]);
  expect(requests({ http_route: "/whoami", http_response_status_class: "4xx" })).toEqual([1]);
  // Refused right after routing.
  expect(requests({ http_route: "/documents/", http_request_method: "POST" })).toEqual([1]);
  expect(requests({ ...route, http_response_status_class: "2xx" })).toEqual([3]);
  expect(valuesOf(families, "http_server_active_requests")).toEqual([0]);
  expect(valuesOf(families, "svc_challenges_total", { outcome: "created" })).toEqual([1]);
  expect(valuesOf(families, "svc_challenges_total", { outcome: "authenticated" })).toEqual([0]);
  expect(valuesOf(families, "db_client_connection_max")).toEqual([10]);
  expect(valuesOf(families, "process_resident_memory_bytes")[0]).toBeGreaterThan(1e6);
  expect(valuesOf(families, "process_cpu_seconds_total")[0]).toBeGreaterThan(0);
  await until("the event loop was looked at, and no statement is left", async () => {
    const now = await server.scrape();
    const [n = 0] = valuesOf(now, "svc_event_loop_delay_seconds_count");
    return n > 0 && valuesOf(now, "db_client_connection_used")[0] === 0;
  });
});

test("a held poll is in flight", async () => {
  await using server = await start();
  const verifier = "v".repeat(43);
  const hash = new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
  const query = `?code_challenge=${hash}&code_challenge_method=S256`;
  const generated = await server.fetch(`/noauth/v1/challenge_generator/alice@example.com${query}`);
  const { polling_url: url } = (await generated.json()) as { polling_url: string };
  const headers = { prefer: "wait=20", authorization: `Challenge ${verifier}` };
  const poll = server.fetch(new URL(url).pathname, { headers });
  await until("the poll is held", async () => {
    const [active] = valuesOf(await server.scrape(), "http_server_active_requests");
    return active === 1;
  });
  await server.end();
  expect((await poll).status).toBe(200);
});

test("rejected requests are counted, and a mounted path has its own routes", async () => {
  await using server = await start("--root-path", "/svc");
  expect((await server.fetch("/svc/healthcheck")).status).toBe(200);
  const twice = "GET /svc/healthcheck HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n";
  expect(await exchange(server.port, twice, 500)).toStartWith("HTTP/1.1 400");
  const families = await server.scrape();
  const counted = (http_route: string, http_response_status_class: string) =>
    valuesOf(families, duration, { http_route, http_response_status_class })[0];
  expect(counted("/healthcheck", "2xx")).toBeGreaterThan(0);
  expect(counted("none", "4xx")).toBeGreaterThan(0);
});

test("clients cannot create more series than there are routes", async () => {
  await using server = await start();
  const random = () => `stray-${crypto.randomUUID()}`;
  const paths = [
    () => `/${random()}`,
    () => `/documents/${random()}`,
    () => `/${random()}/${random()}?x=${random()}`,
    () => `/noauth/v1/${random()}/${random()}`,
    () => `/challenge_validator/${random()}`,
  ];
  const methods = ["GET", "POST", "DELETE", "PROPFIND", "XMETHOD"];
  for (let at = 0; at < 1000; at += 50) {
    const some = Array.from({ length: 50 }, (_, n) => {
      const path = paths[n % paths.length]!();
      const method = methods[Math.floor(n / paths.length) % methods.length]!;
      return server.fetch(path, { method }).then((answer) => answer.text());
    });
    await Promise.all(some);
  }
  const families = await server.scrape();
  expect(valuesOf(families, duration).reduce((a, b) => a + b, 0)).toBe(1000);
  const samples = [...families.values()].flatMap((family) => family.samples);
  const valuesFor = (name: string) => [...new Set(samples.flatMap(({ labels }) => labels[name] ?? []))];
  const routes = (await createInspectionApp({})).routes.map(({ path }) => path);
  expect([...routes, "none"]).toEqual(expect.arrayContaining(valuesFor("http_route")));
  expect(valuesFor("http_request_method").sort()).toEqual(["DELETE", "GET", "POST", "_OTHER"]);
  // The requests appear nowhere else either.
  expect(JSON.stringify(samples).includes("stray")).toBe(false);
});

test("with workers, one port serves the metrics of all, and shows which is down", async () => {
  await using server = await start("--workers", "2");
  const asked = 40;
  for (let n = 0; n < asked; n += 1) {
    await server.fetch("/healthcheck", { headers: { connection: "close" } });
  }
  // On a busy machine, one of them may be too slow at first.
  const scraped = async (up: number[]) => {
    let families = await server.scrape();
    await until(`${up} to be up`, async () => {
      families = await server.scrape();
      return Bun.deepEquals(valuesOf(families, "svc_worker_up").sort(), up);
    });
    return families;
  };
  const families = await scraped([1, 1]);
  const counts = valuesOf(families, duration, { http_route: "/healthcheck" });
  expect(counts.reduce((a, b) => a + b, 0)).toBe(asked);
  for (const worker of ["0", "1"]) {
    expect(valuesOf(families, "svc_worker_up", { worker })).toEqual([1]);
    expect(valuesOf(families, "process_cpu_seconds_total", { worker })).toHaveLength(1);
  }
  const all = [...families.values()].flatMap(({ samples }) => samples);
  expect(new Set(all.map(({ labels }) => labels.worker))).toEqual(new Set(["0", "1"]));

  // A worker that hangs is omitted and reported.
  const [first] = descendants(server.pid);
  process.kill(first!.pid, "SIGSTOP");
  const without = await scraped([0, 1]);
  process.kill(first!.pid, "SIGCONT");
  expect(valuesOf(without, "process_cpu_seconds_total")).toHaveLength(1);

  // The successor of a dead worker has the same number.
  process.kill(first!.pid, "SIGKILL");
  await server.says(`worker ${first!.pid} was killed by SIGKILL`);
  await scraped([1, 1]);
  expect((await server.end()).code).toBe(0);
}, 60_000);

test.each([[[]], [["--workers", "2"]]])("a port that is taken with %p: one clear line", async (args) => {
  using taken = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const port = String(await freePort());
  const given = ["server", "start", "server/main:app", "--port", port, ...args];
  const { code, stderr } = await svc(given, { ...own.env, SVC_METRICS_PORT: String(taken.port) }, own.path);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `svc: Cannot serve /metrics on port ${taken.port} of 127.0.0.1, which is taken: choose another one with SVC_METRICS_PORT\n`,
  });
});

test.each([[[]], [["--workers", "2"]]])("an unknown provider with %p: one clear line", async (args) => {
  const given = ["server", "start", "server/main:app", "--port", "0", ...args];
  const wrong = { ...own.env, SVC_PUBLIC_URL: "http://a", METRIC_PROVIDERS: "prometheus,oltp" };
  const { code, stderr } = await svc(given, wrong, own.path);
  expect([code, stderr.split("\n")[0]]).toEqual([
    1,
    `svc: METRIC_PROVIDERS: "prometheus,oltp" contains an unknown provider (known: prometheus, otlp): did you mean otlp?`,
  ]);
});

test("without configuration, no port is open, and nothing is loaded", async () => {
  const preload = join(own.path, "loaded.ts");
  const names = 'Object.keys(require.cache).filter((name) => name.includes("@opentelemetry"))';
  writeFileSync(preload, `process.on("exit", () => console.log("loaded", ${names}.length));`);
  const loaded = async (providers: string) => {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const variables = { ...own.env, METRIC_PROVIDERS: providers, SVC_METRICS_PORT: String(metricsPort) };
    const args = ["server", "start", "server/main:app", "--port", String(port)];
    const { child, finished, says } = spawnSvc(args, variables, preload, own.path);
    await Promise.race([says("listening on"), finished]);
    const open = await metricsAt(metricsPort).then(
      () => true,
      () => false,
    );
    child.kill("SIGTERM");
    const [, count] = (await finished).stdout.match(/loaded (\d+)/) ?? [];
    return { open, loaded: Number(count) > 0 };
  };
  expect(await loaded("")).toEqual({ open: false, loaded: false });
  expect(await loaded("prometheus")).toEqual({ open: true, loaded: true });
});
