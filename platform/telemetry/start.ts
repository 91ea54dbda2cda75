import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import type { Log } from "../log.ts";
import { challengeCounter } from "./challenges.ts";
import { pairsOf } from "./collector.ts";
import { observeProcess } from "./process.ts";
import type { MetricProvider } from "./providers.ts";
import type { Program, Telemetry } from "./telemetry.ts";
import type { TelemetryConfig } from "./variables.ts";

/** The time limit for sending the rest at the end; the collector may be down. */
const flushMilliseconds = 2000;

/**
 * Starts the configured telemetry. Loaded only by `openTelemetry`, because loading takes a while and most programs do
 * not need it.
 */
export async function startTelemetry({
  config,
  log,
  program,
  providers,
  traced,
}: {
  config: TelemetryConfig;
  log: Log;
  program: Program;
  providers: ReadonlySet<MetricProvider>;
  traced: boolean;
}): Promise<Telemetry> {
  const resource = defaultResource().merge(
    resourceFromAttributes({
      ...Object.fromEntries(pairsOf(config.otelResourceAttributes)),
      "service.name": config.otelServiceName ?? program,
      // Several processes form one service, and each has its own counters.
      "service.instance.id": crypto.randomUUID(),
    }),
  );
  const metrics =
    providers.size > 0
      ? (await import("./metrics.ts")).openMetrics({ config, log, resource, providers })
      : undefined;
  const traces = traced ? (await import("./traces.ts")).openTraces({ config, log, resource }) : undefined;
  const stopWatching = metrics && observeProcess(metrics.meter);
  return {
    meter: metrics?.meter,
    tracing: traces?.tracing,
    scrape: metrics?.scrape,
    challenge: metrics ? challengeCounter(metrics.meter) : () => {},
    async stop() {
      stopWatching?.();
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, flushMilliseconds);
      // A failure to send was logged when it happened.
      await Promise.race([Promise.allSettled([metrics?.stop(), traces?.stop()]), late]);
      clearTimeout(timer);
    },
  };
}
