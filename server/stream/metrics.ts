import type { Meter } from "@opentelemetry/api";
import type { EndReason } from "./connection.ts";

/** A stream of one incident, or of all. */
export type StreamKind = "incident" | "all";

/** The number of open streams, and of ended ones by reason. */
export class StreamMetrics {
  readonly #open;
  readonly #ended;

  constructor(meter: Meter) {
    this.#open = meter.createUpDownCounter("svc_streams", { description: "Open streams of events" });
    this.#ended = meter.createCounter("svc_streams_ended_total", {
      description: "Streams of events that have ended, and why",
    });
  }

  begun(of: StreamKind): void {
    this.#open.add(1, { of });
  }

  ended(of: StreamKind, reason: EndReason): void {
    this.#open.add(-1, { of });
    this.#ended.add(1, { of, reason });
  }
}
