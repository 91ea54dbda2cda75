import { nearest } from "../nearest.ts";

/** Ways in which metrics leave this process. */
const metricProviders = ["prometheus", "otlp"] as const;
export type MetricProvider = (typeof metricProviders)[number];

/** METRIC_PROVIDERS, which was found to name nothing else. */
export function providersOf(list: string): ReadonlySet<MetricProvider> {
  const named = new Set(wordsOf(list));
  return new Set(metricProviders.filter((one) => named.has(one)));
}

/** What is wrong with METRIC_PROVIDERS, if anything is. */
export function providersFault(list: string): string | undefined {
  const stranger = wordsOf(list).find((word) => !metricProviders.some((one) => one === word));
  if (stranger === undefined) return undefined;
  const meant = nearest(stranger, metricProviders);
  return `names something that is none of ${metricProviders.join(", ")}${meant ? `: did you mean ${meant}?` : ""}`;
}

function wordsOf(list: string): string[] {
  return list
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
}
