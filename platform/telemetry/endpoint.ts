import { hostInUrl } from "../address.ts";
import { SvcError } from "../errors.ts";
import { providersOf } from "./providers.ts";
import { type TelemetryConfig, telemetryVariables } from "./variables.ts";

/** Where /metrics is served. */
export interface MetricsPlace {
  host: string;
  port: number;
  /** The variable that sets the port. */
  variable: string;
}

/** Where a program serves /metrics, if it is configured to. */
export function metricsPlace(
  config: Pick<TelemetryConfig, "metricProviders" | "metricsHost" | "metricsPort" | "schedulerMetricsPort">,
  portKey: "metricsPort" | "schedulerMetricsPort",
): MetricsPlace | undefined {
  if (!providersOf(config.metricProviders ?? "").has("prometheus")) return undefined;
  return { host: config.metricsHost, port: config[portKey], variable: telemetryVariables[portKey].name };
}

export interface MetricsEndpoint {
  /** In the form that a person types. */
  address: string;
  stop(): Promise<void>;
}

const contentType = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Serves /metrics on a separate port, which no proxy exposes by accident.
 * @throws SvcError when it cannot listen there
 */
export function serveMetrics(
  { host, port, variable }: MetricsPlace,
  scrape: () => Promise<string>,
): MetricsEndpoint {
  try {
    const server = Bun.serve({
      hostname: host,
      port,
      reusePort: false,
      development: false,
      fetch: (request) => answer(request, scrape),
      error: () => new Response(null, { status: 500 }),
    });
    return {
      address: `http://${hostInUrl(host)}:${server.port}/metrics`,
      stop: () => server.stop(true),
    };
  } catch (cause) {
    const taken = (cause as { code?: string }).code === "EADDRINUSE";
    const reason = taken ? "is taken" : "is not available";
    throw new SvcError(
      "configuration",
      `Cannot serve /metrics on port ${port} of ${host}, which ${reason}: choose another one with ${variable}`,
      { cause },
    );
  }
}

async function answer(request: Request, scrape: () => Promise<string>): Promise<Response> {
  if (new URL(request.url).pathname !== "/metrics") return new Response(null, { status: 404 });
  if (request.method !== "GET" && request.method !== "HEAD") {
    return new Response(null, { status: 405, headers: { allow: "GET, HEAD" } });
  }
  const headers = { "content-type": contentType, "cache-control": "no-store" };
  return new Response(await scrape(), { headers });
}
