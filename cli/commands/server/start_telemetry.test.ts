import { expect, test } from "bun:test";
import { version } from "../../../package.json" with { type: "json" };
import { svc } from "../../../tests/support/cli/process.ts";
import { attributeOf, type Collector, type Span, startCollector } from "../../../tests/support/collector.ts";
import { useOwnServer } from "../../../tests/support/http/serving.ts";
import { descendants } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

const own = useOwnServer();

const start = (more: Record<string, string>, ...args: string[]) => own.start(args, more);

const traced = ({ url }: Pick<Collector, "url">) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_TRACES_EXPORTER: "otlp",
});

/** The lines of the access log. */
const requestsIn = (stderr: string) =>
  stderr
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === "request");

test("otlp: sends metrics to the collector with the configured headers, and the rest at exit", async () => {
  using collector = startCollector();
  await using server = await start(
    {
      METRIC_PROVIDERS: "otlp",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-team=a%20b",
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: "authorization=Bearer secret-of-the-collector",
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=trial",
    },
    "--log-level",
    "trace",
  );
  await server.fetch("/healthcheck");
  // The first would be due after a minute.
  const { code, stderr } = await server.end();
  expect(code).toBe(0);
  expect([...collector.metrics()]).toContain("http_server_request_duration_seconds");
  const [first] = collector.received;
  expect(first).toMatchObject({
    path: "/v1/metrics",
    headers: { "x-team": "a b", authorization: "Bearer secret-of-the-collector", "content-encoding": "gzip" },
  });
  expect(first?.text).toContain('{"key":"deployment.environment.name","value":{"stringValue":"trial"}}');
  expect(first?.text).toContain('{"key":"service.name","value":{"stringValue":"svc-server"}}');
  expect(first?.text).toContain(`{"key":"service.version","value":{"stringValue":"${version}"}}`);
  expect(stderr).not.toContain("secret-of-the-collector");
});

test("workers flush at exit, too, and the supervisor waits for it", async () => {
  using collector = startCollector();
  const variables = { METRIC_PROVIDERS: "otlp", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  await using server = await start(variables, "--workers", "1", "--timeout-graceful-shutdown", "0");
  await server.fetch("/healthcheck");
  expect((await server.end()).code).toBe(0);
  expect([...collector.metrics()]).toContain("http_server_request_duration_seconds");
});

test("a request is a span named by its route, with its trace in the log and statements as children", async () => {
  using collector = startCollector();
  await using server = await start(traced(collector));
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
  const verifier = "w".repeat(43);
  const hash = new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
  const query = `?code_challenge=${hash}&code_challenge_method=S256`;
  const path = `/noauth/v1/challenge_generator/alice@example.com${query}`;
  const generated = await server.fetch(path, { headers: { traceparent } });
  const { polling_url: url } = (await generated.json()) as { polling_url: string };
  const { pathname } = new URL(url);
  const headers = { authorization: `Challenge ${verifier}` };
  for (const _ of [1, 2]) expect((await server.fetch(pathname, { headers })).status).toBe(200);
  await server.fetch("/nowhere/at/all", { headers: { traceparent: `00-${trace}-XX` } });
  await until("the last of them", () => collector.spans().some(({ name }) => name === "GET"));
  const { stderr } = await server.end();

  const spans = collector.spans();
  const servers = spans.filter(({ kind }) => kind === 2);
  const first = servers.find(({ traceId }) => traceId === trace) as Span;
  expect(first).toMatchObject({
    name: "GET /noauth/v1/:operation/:argument",
    parentSpanId: "00f067aa0ba902b7",
  });
  expect(attributeOf(first, "http.response.status_code")).toBe(200);
  const line = requestsIn(stderr).find(({ trace_id }) => trace_id === trace);
  expect(line.request_id).toBe(attributeOf(first, "svc.request_id"));

  const statements = spans.filter(({ parentSpanId }) => parentSpanId === first.spanId);
  expect(statements.map(({ name }) => name)).toContain("INSERT");
  expect(statements.every(({ kind, traceId }) => kind === 3 && traceId === trace)).toBe(true);

  // The traceparent was invalid, so it has a new trace. Only the method is the name, because the path may be anything.
  const stranger = servers.find((span) => attributeOf(span, "http.response.status_code") === 404);
  expect([stranger?.name, stranger?.parentSpanId, stranger?.traceId === trace]).toEqual([
    "GET",
    undefined,
    false,
  ]);

  const sent = JSON.stringify(collector.received);
  for (const secret of [pathname.split("/").at(-1)!, verifier, hash, "alice", "nowhere"])
    expect(sent).not.toContain(secret);
});

test("a collector that hangs delays nothing, and is reported once", async () => {
  const { promise: never } = Promise.withResolvers<Response>();
  using collector = startCollector(() => never);
  await using server = await start({
    ...traced(collector),
    METRIC_PROVIDERS: "otlp",
    OTEL_METRIC_EXPORT_INTERVAL: "100",
    OTEL_EXPORTER_OTLP_TIMEOUT: "300",
  });
  // Far more than the buffer for the collector holds.
  for (let n = 0; n < 60; n += 1) {
    const some = Array.from({ length: 50 }, () => server.fetch("/healthcheck"));
    expect((await Promise.all(some)).every(({ status }) => status === 200)).toBe(true);
  }
  await server.says("the collector rejects traces");
  await server.says("the collector rejects metrics");
  await until("it was asked again", () => collector.received.length > 5);
  const { code, stderr } = await server.end();
  expect(code).toBe(0);
  expect(stderr.match(/the collector rejects traces/g)).toHaveLength(1);
  expect(stderr.match(/the collector rejects metrics/g)).toHaveLength(1);
}, 60_000);

test("a collector that recovers is reported, too", async () => {
  let down = true;
  using collector = startCollector(() => new Response("{}", { status: down ? 400 : 200 }));
  await using server = await start({
    METRIC_PROVIDERS: "otlp",
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/elsewhere`,
    OTEL_METRIC_EXPORT_INTERVAL: "100",
  });
  await server.says("the collector rejects metrics");
  down = false;
  await server.says("the collector accepts metrics again");
  expect(collector.received[0]?.path).toBe("/elsewhere");
});

test.each(["hangs", "is not there"])("the end does not wait for a collector that %s", async (what) => {
  const { promise: never } = Promise.withResolvers<Response>();
  using collector = startCollector(() => never);
  if (what === "is not there") collector[Symbol.dispose]();
  const hour = { OTEL_EXPORTER_OTLP_TIMEOUT: "3600000", OTEL_METRIC_EXPORT_INTERVAL: "3600000" };
  await using server = await start({ ...traced(collector), ...hour, METRIC_PROVIDERS: "otlp" });
  expect((await server.fetch("/healthcheck")).status).toBe(200);
  expect((await server.end()).code).toBe(0);
});

test("invalid settings of the collector are reported together, without secrets", async () => {
  const wrong = {
    SVC_PUBLIC_URL: "http://a",
    OTEL_EXPORTER_OTLP_HEADERS: "no-pair-and-a-secret",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    OTEL_TRACES_SAMPLER: "often",
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:word@collector",
  };
  const { code, stderr } = await svc(["server", "start", "server/main:app"], { ...own.env, ...wrong });
  expect(code).toBe(1);
  expect(stderr).toContain("OTEL_EXPORTER_OTLP_HEADERS: this value");
  expect(stderr).toContain(`OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not http/json`);
  expect(stderr).toContain("OTEL_TRACES_SAMPLER");
  expect(stderr).toContain("OTEL_EXPORTER_OTLP_ENDPOINT");
  expect(stderr).not.toContain("no-pair-and-a-secret");
});

const levels = (stderr: string) =>
  stderr
    .split("\n")
    .filter((line) => line.includes("the log level has changed"))
    .map((line) => JSON.parse(line).log_level);

test("SIGUSR2 switches a server's log to debug, and back", async () => {
  await using server = await start({}, "--log-level", "warn");
  const poll = async () =>
    (await server.fetch(`/noauth/v1/challenge_poller/${"a".repeat(43)}`)).headers.get("x-request-id");
  const before = await poll();
  // A line is written after the answer, so the signal may overtake the line of the last request.
  const last = await poll();
  process.kill(server.pid, "SIGUSR2");
  await server.says('"log_level":"debug"');
  const during = await poll();
  await server.says(`"request_id":"${during}"`);
  process.kill(server.pid, "SIGUSR2");
  await server.says('"log_level":"warn"');
  const behind = await poll();
  const { code, stderr } = await server.end();
  expect([code, levels(stderr)]).toEqual([0, ["debug", "warn"]]);
  const told = requestsIn(stderr).map(({ request_id }) => request_id);
  expect(told.filter((id) => id !== last)).toEqual([during]);
  expect([before, behind]).not.toContain(during);
});

test("SIGUSR2 reaches all workers, including those started later", async () => {
  await using server = await start({}, "--workers", "2");
  const said = (text: string, times: number) =>
    until(text, async () => server.said().split(text).length - 1 >= times);
  process.kill(server.pid, "SIGUSR2");
  await said('"log_level":"debug"', 2);
  // Sent directly to a worker, as from a terminal, it has no effect.
  const workers = () => descendants(server.pid).map(({ pid }) => pid);
  const before = workers();
  for (const pid of before) process.kill(pid, "SIGUSR2");
  expect((await server.fetch("/healthcheck")).status).toBe(200);
  expect(workers()).toEqual(before);
  process.kill(server.pid, "SIGHUP");
  await said('"log_level":"debug"', 4);
  process.kill(server.pid, "SIGUSR2");
  await said('"log_level":"info"', 2);
  expect((await server.end()).code).toBe(0);
}, 60_000);
