import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { Log } from "../log.ts";
import type { TelemetryConfig } from "./variables.ts";

/**
 * Parses `name=value`, comma-separated, with percent-encoded values (W3C Baggage). The variables' pattern has validated
 * the text.
 */
export function pairsOf(text: string | undefined): [string, string][] {
  return (text ?? "").split(",").flatMap((pair): [string, string][] => {
    const at = pair.indexOf("=");
    return at < 0 ? [] : [[pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())]];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The exporters use an enum for this, which they do not export. */
type Compression = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>["compression"];

/** An exporter's settings for the collector. */
export function collectorOf(config: TelemetryConfig, signal: "metrics" | "traces") {
  const [endpoint, headers] =
    signal === "metrics"
      ? [config.otlpMetricsEndpoint, config.otlpMetricsHeaders]
      : [config.otlpTracesEndpoint, config.otlpTracesHeaders];
  return {
    url: endpoint ?? `${config.otlpEndpoint.replace(/\/+$/, "")}/v1/${signal}`,
    headers: Object.fromEntries([...pairsOf(config.otlpHeaders), ...pairsOf(headers)]),
    timeoutMillis: config.otlpTimeout,
    compression: config.otlpCompression as Compression,
  };
}

interface Exporter<T, R> {
  export(items: T, done: (result: R) => void): void;
}

/**
 * Wraps an exporter to log once when the collector starts rejecting data, and once when it accepts data again. Rejected
 * data is lost: nothing is buffered.
 */
export function logOutages<T, R extends { code: number; error?: Error }, E extends Exporter<T, R>>(
  exporter: E & Exporter<T, R>,
  log: Log,
  what: "metrics" | "traces",
): E {
  const send = exporter.export.bind(exporter);
  let refused = false;
  exporter.export = (items, done) =>
    send(items, (result) => {
      const failed = result.code !== 0;
      if (failed && !refused)
        log.warn({ err: result.error }, `the collector rejects ${what}: they are lost until it accepts them`);
      else if (!failed && refused) log.info(`the collector accepts ${what} again`);
      refused = failed;
      done(result);
    });
  return exporter;
}
