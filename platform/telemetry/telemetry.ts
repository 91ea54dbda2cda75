import type { Attributes, Meter } from "@opentelemetry/api";
import type { Log } from "../log.ts";
import type { ChallengeOutcome } from "./challenges.ts";
import { providersOf } from "./providers.ts";
import type { TelemetryConfig } from "./variables.ts";

/*
 * Vocabulary of this folder
 *
 * provider    a way in which metrics leave this process: `prometheus` is asked for them, `otlp` sends them
 * collector   what receives by OTLP; it may be down or slow, and nothing here waits for it
 * scrape      to ask for all metrics, as they are now
 * series      a metric with one set of values for its labels. Every label has few values, whatever is sent to us: a name
 *             from a request, an id or an address is never one
 */

/** What a process tells of itself. Whatever is not configured is not there, and costs nothing. */
export interface Telemetry {
  readonly meter?: Meter;
  readonly tracing?: Tracing;
  /** All metrics in the text format of Prometheus; only where METRIC_PROVIDERS names it. */
  readonly scrape?: () => Promise<string>;
  /** Counts what became of a challenge. */
  challenge(outcome: ChallengeOutcome): void;
  /** Sends what is left, as far as the collector takes it in a moment. Throws nothing. */
  stop(): Promise<void>;
}

export interface Work {
  /** One of few: a template, never what was sent to us. */
  name: string;
  /** `server`: somebody waits for it; `client`: we wait for somebody else. */
  kind?: "server" | "client";
  attributes?: Attributes;
  /** The `traceparent` that a caller sent; one that is not well-formed counts as none. */
  parent?: string | null;
}

/** A piece of work while it is done; OpenTelemetry's own is for those who have loaded it. */
export interface WorkSpan {
  readonly traceId: string;
  rename(name: string): void;
  note(attributes: Attributes): void;
  /** It came to nothing; `type` is one of few. */
  failed(type?: string): void;
}

export interface Tracing {
  /** Does the work in a span that ends with it; one that throws has failed. Spans that begin meanwhile are its children. */
  within<T>(work: Work, run: (span: WorkSpan) => Promise<T>): Promise<T>;
  /** Begins a child of the span that is at work here, if there is one. */
  child(work: Work): (WorkSpan & { end(): void }) | undefined;
}

/** What this program is called in telemetry, unless OTEL_SERVICE_NAME says so. */
export type Program = "svc-server" | "svc-scheduler";

/** Begins to tell what the configuration asks for; undefined when that is nothing, and then nothing is loaded. */
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
  return await startTelemetry({ config, log, program, providers, traced });
}
