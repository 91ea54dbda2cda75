import type { Attributes, Meter } from "@opentelemetry/api";
import type { Log } from "../log.ts";
import { providersOf } from "./providers.ts";
import type { TelemetryConfig } from "./variables.ts";

/*
 * Vocabulary of this folder
 *
 * provider    a way in which metrics leave this process: `prometheus` serves them, `otlp` sends them
 * collector   the receiver of OTLP data; it may be down or slow, and nothing here waits for it
 * scrape      to fetch the current values of all metrics
 * series      a metric with one set of label values. Every label has few values, whatever clients send: a name from a
 *             request, an id or an address is never a label
 */

/** The telemetry of a process. Parts that are not configured are undefined, and cost nothing. */
export interface Telemetry {
  readonly meter?: Meter;
  readonly tracing?: Tracing;
  /** All metrics in the text format of Prometheus; only if METRIC_PROVIDERS includes it. */
  readonly scrape?: () => Promise<string>;
  /** Sends the rest, unless the collector takes too long to accept it. Throws nothing. */
  stop(): Promise<void>;
}

export interface Work {
  /** A template with few values, never taken from client input. */
  name: string;
  /** `server`: another party waits for it; `client`: we wait for another party. */
  kind?: "server" | "client";
  attributes?: Attributes;
  /** The caller's `traceparent`; a malformed one is ignored. */
  parent?: string | null;
}

/** A span in progress, independent of OpenTelemetry's types, which are loaded on demand. */
export interface WorkSpan {
  readonly traceId: string;
  rename(name: string): void;
  note(attributes: Attributes): void;
  /** Marks it as failed; `type` has few values. */
  failed(type?: string): void;
}

export interface Tracing {
  /**
   * Runs the work in a span that ends with it; if it throws, the span has failed. Spans started meanwhile are children.
   */
  within<T>(work: Work, run: (span: WorkSpan) => Promise<T>): Promise<T>;
  /** Starts a child of the current span, if there is one. */
  child(work: Work): (WorkSpan & { end(): void }) | undefined;
}

/** The name of this program in telemetry, unless OTEL_SERVICE_NAME overrides it. */
export type Program = "svc-server" | "svc-scheduler";

/** Starts the configured telemetry; undefined, without loading anything, if there is none. */
export async function openTelemetry(
  config: TelemetryConfig,
  log: Log,
  program: Program,
): Promise<Telemetry | undefined> {
  const providers = providersOf(config.metricProviders ?? "");
  const traced = config.otelTracesExporter
    ? config.otelTracesExporter === "otlp"
    : config.otlpTracesEndpoint !== undefined;
  if (providers.size === 0 && !traced) return undefined;
  const { startTelemetry } = await import("./start.ts");
  return await startTelemetry(config, log, program, { providers, traced });
}
