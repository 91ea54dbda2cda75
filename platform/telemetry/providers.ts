import { nearest } from "../nearest.ts";

/** The ways in which metrics leave this process. */
const metricProviders = ["prometheus", "otlp"] as const;
export type MetricProvider = (typeof metricProviders)[number];

/** Parses METRIC_PROVIDERS, which has been validated. */
export function providersOf(list: string): ReadonlySet<MetricProvider> {
  const named = new Set(wordsOf(list));
  return new Set(metricProviders.filter((one) => named.has(one)));
}

/** Describes what is wrong with METRIC_PROVIDERS, if anything. */
export function providersFault(list: string): string | undefined {
  const stranger = wordsOf(list).find((word) => !metricProviders.some((one) => one === word));
  if (stranger === undefined) return undefined;
  const meant = nearest(stranger, metricProviders);
  return `contains an unknown provider (known: ${metricProviders.join(", ")})${meant ? `: did you mean ${meant}?` : ""}`;
}

function wordsOf(list: string): string[] {
  return list
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
}
