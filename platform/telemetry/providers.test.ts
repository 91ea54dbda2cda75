import { expect, test } from "bun:test";
import { readConfig } from "../../core/config.ts";
import { providersOf } from "./providers.ts";

test.each([
  ["prometheus", ["prometheus"]],
  ["otlp", ["otlp"]],
  ["otlp,prometheus", ["prometheus", "otlp"]],
  [" prometheus , otlp,prometheus,", ["prometheus", "otlp"]],
  ["", []],
  [",", []],
])("METRIC_PROVIDERS=%p names %p", (list, providers) => {
  const { metricProviders } = readConfig({ METRIC_PROVIDERS: list });
  expect([...providersOf(metricProviders ?? "")]).toEqual(providers as never);
});

test.each([
  ["promethus", ": did you mean prometheus?"],
  ["otlp,Prometheus", ": did you mean prometheus?"],
  ["oltp", ": did you mean otlp?"],
  ["statsd", ""],
  ["prometheus;otlp", ""],
])("METRIC_PROVIDERS=%p is refused", (list, hint) => {
  const fault = `METRIC_PROVIDERS: "${list}" contains an unknown provider (known: prometheus, otlp)${hint}`;
  expect(() => readConfig({ METRIC_PROVIDERS: list })).toThrow(fault);
});
