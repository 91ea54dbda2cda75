/** One line with a value. */
export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface Family {
  name: string;
  type: "counter" | "gauge" | "histogram";
  samples: Sample[];
}

const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/;
const line = new RegExp(
  `^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{(${label.source}(?:,${label.source})*)\\})? ([+-]?(?:\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?|Inf)|NaN)$`,
);

/**
 * Parses Prometheus' text format (version 0.0.4) strictly: each metric is one group with its type before its samples, no
 * series occurs twice, and histograms are consistent.
 *
 * @throws Error that names the line
 */
export function parseExposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  const helped = new Set<string>();
  const series = new Set<string>();
  if (!text.endsWith("\n")) throw new Error("no newline at the end");
  let current: Family | undefined;
  for (const one of text.slice(0, -1).split("\n")) {
    const fail = (why: string) => new Error(`${why}: ${one}`);
    if (one === "" || /^# (?!HELP|TYPE)/.test(one)) continue;
    const [, keyword, name = "", rest = ""] =
      one.match(/^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/) ?? [];
    if (keyword === "HELP") {
      if (helped.has(name) || families.has(name)) throw fail("a duplicate or late HELP");
      helped.add(name);
    } else if (keyword === "TYPE") {
      if (families.has(name)) throw fail("a second group");
      if (rest !== "counter" && rest !== "gauge" && rest !== "histogram") throw fail("no such type");
      current = { name, type: rest, samples: [] };
      families.set(name, current);
    } else {
      const sample = sampleOf(one);
      if (!sample) throw fail("no sample");
      if (!current || !belongs(sample.name, current)) throw fail("outside of its group");
      const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (series.has(key)) throw fail("a duplicate series");
      series.add(key);
      current.samples.push(sample);
    }
  }
  for (const family of families.values()) {
    check(family);
    const fault = namingFault(family) ?? (helped.has(family.name) ? undefined : "has no HELP");
    if (fault) throw new Error(`${family.name} ${fault}`);
  }
  return families;
}

function sampleOf(text: string): Sample | undefined {
  const found = text.match(line);
  if (!found) return undefined;
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of (found[2] ?? "").matchAll(new RegExp(label, "g"))) {
    if (name in labels) return undefined;
    labels[name] = value.replace(/\\(.)/g, (_, mark) => (mark === "n" ? "\n" : mark));
  }
  const number = found.at(-1) ?? "";
  return { name: found[1] ?? "", labels, value: Number(number.replace("Inf", "Infinity")) };
}

function belongs(name: string, { name: family, type }: Family): boolean {
  if (type !== "histogram") return name === family;
  return [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name);
}

function check({ name, type, samples }: Family): void {
  if (type === "counter") {
    if (!name.endsWith("_total")) throw new Error(`a counter without _total: ${name}`);
    if (samples.some(({ value }) => !(value >= 0))) throw new Error(`a counter below zero: ${name}`);
  }
  if (type !== "histogram") return;
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...rest } }) =>
    JSON.stringify(Object.entries(rest).sort()),
  );
  for (const [labels, group] of groups) {
    const of = (suffix: string) => group.filter((sample) => sample.name === name + suffix);
    const buckets = of("_bucket")
      .map((sample) => ({ at: Number((sample.labels.le ?? "").replace("Inf", "Infinity")), n: sample.value }))
      .sort((a, b) => a.at - b.at);
    const [count] = of("_count");
    const grows = buckets.every(({ n }, at) => n >= (buckets[at - 1]?.n ?? 0));
    const whole = buckets.at(-1)?.at === Number.POSITIVE_INFINITY && buckets.at(-1)?.n === count?.value;
    if (!grows || !whole || of("_sum").length !== 1)
      throw new Error(`an invalid histogram: ${name} ${labels}`);
  }
}

/** The values of one metric with at least these labels. */
export function valuesOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number[] {
  return [...families.values()]
    .flatMap(({ samples }) => samples)
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .map(({ value }) => value);
}

/** The problem that `promtool check metrics` would report (https://prometheus.io/docs/practices/naming/). */
function namingFault({ name, type, samples }: Family): string | undefined {
  if (/[A-Z:]/.test(name)) return "is not in snake_case";
  if ((type === "counter") !== name.endsWith("_total")) return "ends in _total, or a counter does not";
  if (type !== "histogram" && /_(count|sum|bucket)$/.test(name)) return "ends like a part of a histogram";
  if (/_(gauge|counter|histogram|metric)(_|$)/.test(name)) return "names its type";
  if (/_(ms|milliseconds|minutes|hours|days|kilobytes|megabytes|percent)(_|$)/.test(name))
    return "is not in a base unit";
  if (samples.some(({ labels }) => Object.keys(labels).some((one) => /[A-Z]/.test(one))))
    return "has a label that is not in snake_case";
  return undefined;
}
