import type { Meter } from "@opentelemetry/api";

/** Creates instruments once per meter, for code that has no state to keep them in. */
export function perMeter<T>(create: (meter: Meter) => T): (meter: Meter) => T {
  const known = new WeakMap<Meter, { instruments: T }>();
  return (meter) => {
    const found = known.get(meter) ?? { instruments: create(meter) };
    known.set(meter, found);
    return found.instruments;
  };
}
