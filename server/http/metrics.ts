import type { Histogram, UpDownCounter } from "@opentelemetry/api";
import { Elysia } from "elysia";
import type { Telemetry, WorkSpan } from "../../platform/telemetry/telemetry.ts";

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]);
/** Clients may invent methods and paths: those share one value. */
const otherMethod = "_OTHER";
const noRoute = "none";

type Answer = Response | Promise<Response>;

/** Metrics and spans of requests: count, duration, and a span for each. */
export class ObservedRequests {
  readonly #routes = new WeakMap<Request, string>();
  readonly #traces = new WeakMap<Request, string>();
  readonly #active: UpDownCounter | undefined;
  readonly #duration: Histogram | undefined;

  constructor(private readonly telemetry: Telemetry) {
    const { meter } = telemetry;
    this.#active = meter?.createUpDownCounter("http.server.active_requests", {
      description: "Requests in progress, including held polls",
    });
    this.#active?.add(0);
    this.#duration = meter?.createHistogram("http_server_request_duration_seconds", {
      description: "Duration of requests",
      unit: "s",
      // OpenTelemetry's recommended buckets, plus those of held polls.
      advice: {
        explicitBucketBoundaries: [
          0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30,
        ],
      },
    });
  }

  /** Records the route template that a request matched. */
  matched(request: Request, route: string | undefined): void {
    if (route) this.#routes.set(request, route);
  }

  /** The trace that a request belongs to, if tracing is enabled. */
  traceOf(request: Request): string | undefined {
    return this.#traces.get(request);
  }

  async around(request: Request, answer: () => Answer): Promise<Response> {
    const began = performance.now();
    this.#active?.add(1);
    let status = 500;
    try {
      const response = await this.#traced(request, answer);
      status = response.status;
      return response;
    } finally {
      this.#active?.add(-1);
      this.#record(request, this.#routes.get(request) ?? noRoute, status, performance.now() - began);
    }
  }

  /** Records a request answered without waiting. It gets no span: these are the bulk of all requests. */
  atOnce(request: Request, route: string, { status }: Response): void {
    this.#record(request, route, status, 0);
  }

  /** Records a request that never reached a route. */
  outside(request: Request, answer: Response): void {
    this.atOnce(request, noRoute, answer);
  }

  async #traced(request: Request, answer: () => Answer): Promise<Response> {
    const { tracing } = this.telemetry;
    if (!tracing) return await answer();
    const method = methodOf(request);
    const parent = request.headers.get("traceparent");
    return await tracing.within({ name: method, kind: "server", parent }, async (span) => {
      this.#traces.set(request, span.traceId);
      const response = await answer();
      this.#describe(span, request, method, response);
      return response;
    });
  }

  #describe(span: WorkSpan, request: Request, method: string, { status, headers }: Response): void {
    const route = this.#routes.get(request);
    if (route) {
      span.rename(`${method} ${route}`);
      span.note({ "http.route": route });
    }
    span.note({ "http.request.method": method, "http.response.status_code": status });
    const requestId = headers.get("x-request-id");
    if (requestId !== null) span.note({ "svc.request_id": requestId });
    if (status >= 500) span.failed(String(status));
  }

  #record(request: Request, route: string, status: number, milliseconds: number): void {
    this.#duration?.record(milliseconds / 1000, {
      "http.request.method": methodOf(request),
      "http.route": route,
      "http.response.status_class": `${Math.floor(status / 100)}xx`,
    });
  }
}

function methodOf({ method }: Request): string {
  return methods.has(method) ? method : otherMethod;
}

/** Records which route a request matched. Without metrics it installs no hook and costs nothing. */
export const observeRoutes = (requests: ObservedRequests | undefined) => {
  const app = new Elysia({ name: "observe routes" });
  return requests
    ? app
        .onTransform({ as: "global" }, ({ request, route }) => requests.matched(request, route))
        .onError({ as: "global" }, ({ request, route }) => requests.matched(request, route))
    : app;
};
