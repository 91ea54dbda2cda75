/** A span as a collector receives it. */
export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** 2: server, 3: client. */
  kind: number;
  status: { code: number };
  attributes: { key: string; value: Record<string, unknown> }[];
}

interface Received {
  path: string;
  headers: Record<string, string>;
  text: string;
}

export interface Collector extends Disposable {
  url: string;
  port: number;
  received: Received[];
  /** All spans so far. */
  spans(): Span[];
  /** The names of all metrics so far. */
  metrics(): Set<string>;
}

/** A collector for OTLP over HTTP. `answer` provides its responses, and may never respond. */
export function startCollector(
  answer: () => Response | Promise<Response> = () => Response.json({}),
): Collector {
  const received: Received[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    fetch: async (request) => {
      const { pathname: path } = new URL(request.url);
      const bytes = await request.bytes();
      const zipped = request.headers.get("content-encoding") === "gzip";
      const text = new TextDecoder().decode(zipped ? Bun.gunzipSync(bytes) : bytes);
      received.push({ path, headers: Object.fromEntries(request.headers), text });
      return await answer();
    },
  });
  const bodies = (path: string) =>
    received.filter((one) => one.path === path).map(({ text }) => JSON.parse(text));
  const port = server.port ?? 0;
  return {
    received,
    port,
    url: `http://127.0.0.1:${port}`,
    spans: () =>
      bodies("/v1/traces").flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }: { scopeSpans: { spans: Span[] }[] }) =>
          scopeSpans.flatMap(({ spans }) => spans),
        ),
      ),
    metrics: () =>
      new Set(
        bodies("/v1/metrics").flatMap(({ resourceMetrics }) =>
          resourceMetrics.flatMap(({ scopeMetrics }: { scopeMetrics: { metrics: { name: string }[] }[] }) =>
            scopeMetrics.flatMap(({ metrics }) => metrics.map(({ name }) => name)),
          ),
        ),
      ),
    [Symbol.dispose]: () => void server.stop(true),
  };
}

/** An attribute of a span, of any type. */
export function attributeOf({ attributes }: Span, key: string): unknown {
  const value = attributes.find((one) => one.key === key)?.value;
  return value && Object.values(value)[0];
}
