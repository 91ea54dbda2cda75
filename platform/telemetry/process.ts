import type { Meter } from "@opentelemetry/api";
import { version } from "../../package.json" with { type: "json" };
import { build } from "../build.ts";

const sampleMilliseconds = 250;

/**
 * Watches the process itself: memory, processor time, and how late its timers are.
 * @returns what ends it
 */
export function observeProcess(meter: Meter): () => void {
  const started = performance.timeOrigin / 1000;
  const gauge = (name: string, description: string, unit: string, value: () => number) =>
    meter.createObservableGauge(name, { description, unit }).addCallback((seen) => seen.observe(value()));
  meter
    .createObservableGauge("svc_build_info", { description: "The release of svc, and its build" })
    .addCallback((seen) => seen.observe(1, { version, build: build ?? "" }));
  gauge("process_start_time_seconds", "When the process was started, since 1970", "s", () => started);
  gauge("process_resident_memory_bytes", "Memory that the process takes", "By", () =>
    process.memoryUsage.rss(),
  );
  gauge("process_heap_bytes", "Of that, what its objects take", "By", () => process.memoryUsage().heapUsed);
  meter
    .createObservableCounter("process_cpu_seconds_total", {
      description: "Processor time that the process has had",
      unit: "s",
    })
    .addCallback((seen) => {
      const { user, system } = process.cpuUsage();
      seen.observe((user + system) / 1_000_000);
    });
  return observeEventLoop(meter);
}

/** A timer that asks each time how late it is: so long whatever else waits for its turn, too. */
function observeEventLoop(meter: Meter): () => void {
  const delay = meter.createHistogram("svc_event_loop_delay_seconds", {
    description: `How late a timer was that is due every ${sampleMilliseconds} ms`,
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
