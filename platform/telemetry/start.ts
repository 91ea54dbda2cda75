import type { Meter } from "@opentelemetry/api";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import { version } from "../../package.json" with { type: "json" };
import { build } from "../build.ts";
import type { Log } from "../log.ts";
import { withTimeLimit } from "../time_limit.ts";
import { pairsOf } from "./collector.ts";
import type { MetricProvider } from "./providers.ts";
import type { Program, Telemetry } from "./telemetry.ts";
import type { TelemetryConfig } from "./variables.ts";

/** The time limit for sending the rest at the end; the collector may be down. */
const flushMilliseconds = 2000;

/**
 * Starts the configured telemetry. Loaded only by `openTelemetry`, because loading takes a while and most programs do
 * not need it.
 */
export async function startTelemetry(
  config: TelemetryConfig,
  log: Log,
  program: Program,
  { providers, traced }: { providers: ReadonlySet<MetricProvider>; traced: boolean },
): Promise<Telemetry> {
  const resource = defaultResource().merge(
    resourceFromAttributes({
      "service.version": version,
      ...Object.fromEntries(pairsOf(config.otelResourceAttributes)),
      "service.name": config.otelServiceName ?? program,
      // Several processes form one service, and each has its own counters.
      "service.instance.id": crypto.randomUUID(),
    }),
  );
  const metrics =
    providers.size > 0
      ? (await import("./metrics.ts")).openMetrics(config, log, resource, providers)
      : undefined;
  const traces = traced ? (await import("./traces.ts")).openTraces(config, log, resource) : undefined;
  const stopWatching = metrics && observeProcess(metrics.meter);
  return {
    meter: metrics?.meter,
    tracing: traces?.tracing,
    scrape: metrics?.scrape,
    async stop() {
      stopWatching?.();
      // A failure to send was logged when it happened.
      await withTimeLimit(flushMilliseconds, Promise.allSettled([metrics?.stop(), traces?.stop()]));
    },
  };
}

const sampleMilliseconds = 250;

/**
 * Observes the process itself: memory, processor time, and how late its timers run.
 * @returns a function that stops it
 */
function observeProcess(meter: Meter): () => void {
  const started = performance.timeOrigin / 1000;
  const gauge = (name: string, description: string, unit: string, value: () => number) =>
    meter.createObservableGauge(name, { description, unit }).addCallback((seen) => seen.observe(value()));
  meter
    .createObservableGauge("svc_build_info", { description: "The release of svc, and its build" })
    .addCallback((seen) => seen.observe(1, { version, build: build ?? "" }));
  gauge("process_start_time_seconds", "Start time of the process, since 1970", "s", () => started);
  gauge("process_resident_memory_bytes", "Resident memory of the process", "By", () =>
    process.memoryUsage.rss(),
  );
  gauge(
    "process_heap_bytes",
    "Heap memory in use by the process",
    "By",
    () => process.memoryUsage().heapUsed,
  );
  meter
    .createObservableCounter("process_cpu_seconds_total", {
      description: "Processor time used by the process",
      unit: "s",
    })
    .addCallback((seen) => {
      const { user, system } = process.cpuUsage();
      seen.observe((user + system) / 1_000_000);
    });
  return observeEventLoop(meter);
}

/** Measures how late a timer runs, which is how long everything else waits too. */
function observeEventLoop(meter: Meter): () => void {
  const delay = meter.createHistogram("svc_event_loop_delay_seconds", {
    description: `Delay of a timer that is due every ${sampleMilliseconds} ms`,
    unit: "s",
    advice: { explicitBucketBoundaries: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] },
  });
  let due = performance.now() + sampleMilliseconds;
  const timer = setInterval(() => {
    const now = performance.now();
    delay.record(Math.max(0, now - due) / 1000);
    due = now + sampleMilliseconds;
  }, sampleMilliseconds);
  timer.unref();
  return () => clearInterval(timer);
}
