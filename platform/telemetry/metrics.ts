import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import type { Resource } from "@opentelemetry/resources";
import { MeterProvider, MetricReader, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { version } from "../../package.json" with { type: "json" };
import type { Log } from "../log.ts";
import { collectorOf, logOutages } from "./collector.ts";
import type { MetricProvider } from "./providers.ts";
import type { TelemetryConfig } from "./variables.ts";

/** Collects on request only. */
class OnDemandReader extends MetricReader {
  protected async onShutdown(): Promise<void> {}
  protected async onForceFlush(): Promise<void> {}
}

export function openMetrics(
  config: TelemetryConfig,
  log: Log,
  resource: Resource,
  providers: ReadonlySet<MetricProvider>,
) {
  const onDemand = providers.has("prometheus") ? new OnDemandReader() : undefined;
  const pushed = providers.has("otlp") ? pushReader(config, log) : undefined;
  const provider = new MeterProvider({
    resource,
    readers: [onDemand, pushed].filter((one) => one !== undefined),
  });
  return {
    meter: provider.getMeter("svc", version),
    scrape: onDemand && (() => scrape(onDemand)),
    stop: () => provider.shutdown(),
  };
}

async function scrape(reader: MetricReader): Promise<string> {
  const { resourceMetrics } = await reader.collect();
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  return serializer.serialize(resourceMetrics);
}

function pushReader(config: TelemetryConfig, log: Log): MetricReader {
  const exportIntervalMillis = config.otelMetricExportInterval;
  const exporter = new OTLPMetricExporter(collectorOf(config, "metrics"));
  return new PeriodicExportingMetricReader({
    exporter: logOutages(exporter, log, "metrics"),
    exportIntervalMillis,
    exportTimeoutMillis: Math.min(config.otlpTimeout, exportIntervalMillis),
  });
}
