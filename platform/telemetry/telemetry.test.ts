import { expect, test } from "bun:test";
import { readConfig } from "../../core/config.ts";
import { attributeOf, type Span, startCollector } from "../../tests/support/collector.ts";
import { startTestTelemetry } from "../../tests/support/telemetry.ts";
import { createLog } from "../log.ts";
import { pairsOf } from "./collector.ts";
import { openTelemetry } from "./telemetry.ts";

test.each([
  [{}, undefined],
  [{ METRIC_PROVIDERS: " , " }, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" }, undefined],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:1", OTEL_TRACES_EXPORTER: "none" }, undefined],
  [{ OTEL_TRACES_EXPORTER: "otlp" }, ["tracing"]],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:1" }, ["tracing"]],
  [{ METRIC_PROVIDERS: "prometheus" }, ["meter", "scrape"]],
  [
    {
      METRIC_PROVIDERS: "otlp",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
      OTEL_EXPORTER_OTLP_TIMEOUT: "50",
    },
    ["meter"],
  ],
  [
    { METRIC_PROVIDERS: "otlp,prometheus", OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" },
    ["meter", "scrape"],
  ],
])("%p starts only what is configured", async (environment, parts) => {
  const log = createLog("silent");
  const telemetry = await openTelemetry(readConfig(environment), log, "svc-server");
  const names = (["meter", "tracing", "scrape"] as const).filter((name) => telemetry?.[name] !== undefined);
  expect(telemetry && names.map(String)).toEqual(parts);
  await telemetry?.stop();
});

test("pairs are parsed as OpenTelemetry writes them", () => {
  expect(pairsOf("a=1, b = x%20y%2C ,c=d=e==,f=100%,g=")).toEqual([
    ...([
      ["a", "1"],
      ["b", "x y,"],
      ["c", "d=e=="],
      ["f", "100%"],
      ["g", ""],
    ] as [string, string][]),
  ]);
  expect(pairsOf(undefined)).toEqual([]);
});

/** All spans exported during `work`. */
async function spansOf(
  work: (
    tracing: NonNullable<Awaited<ReturnType<typeof startTestTelemetry>>["telemetry"]["tracing"]>,
  ) => Promise<unknown>,
  environment: Record<string, string> = {},
): Promise<Span[]> {
  using collector = startCollector();
  const endpoint = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` };
  await using started = await startTestTelemetry({ ...endpoint, ...environment });
  await work(started.telemetry.tracing!);
  await started.telemetry.stop();
  return collector.spans();
}

test("spans started within a span are its children, also after an await, and with concurrent spans", async () => {
  const spans = await spansOf((tracing) =>
    Promise.all(
      ["a", "b"].map((name) =>
        tracing.within({ name, kind: "server" }, async (span) => {
          await Bun.sleep(1);
          await tracing.within({ name: `${name} inner` }, async () => {
            tracing.child({ name: `${name} innermost`, kind: "client" })?.end();
          });
          span.note({ "svc.x": 1 });
          span.rename(`${name} renamed`);
        }),
      ),
    ),
  );
  const named = (name: string) => spans.find((span) => span.name === name)!;
  expect(spans).toHaveLength(6);
  for (const name of ["a", "b"]) {
    const outer = named(`${name} renamed`);
    expect([outer.kind, outer.parentSpanId, attributeOf(outer, "svc.x")]).toEqual([2, undefined, 1]);
    expect(named(`${name} inner`).parentSpanId).toBe(outer.spanId);
    expect(named(`${name} innermost`).parentSpanId).toBe(named(`${name} inner`).spanId);
    expect(named(`${name} innermost`).traceId).toBe(outer.traceId);
  }
  expect(named("a renamed").traceId).not.toBe(named("b renamed").traceId);
});

test("a span of work that throws has failed, without the error's message", async () => {
  const spans = await spansOf(async (tracing) => {
    const failing = tracing.within({ name: "work" }, async () => {
      throw new TypeError("a secret");
    });
    await expect(failing).rejects.toThrow("a secret");
  });
  expect(spans.map(({ status }) => status.code)).toEqual([2]);
  expect(attributeOf(spans[0]!, "error.type")).toBe("TypeError");
  expect(JSON.stringify(spans)).not.toContain("a secret");
});

test("without a parent span there is no child span", async () => {
  const spans = await spansOf(async (tracing) => expect(tracing.child({ name: "x" })).toBeUndefined());
  expect(spans).toEqual([]);
});

test("the sampler decides which spans are kept, and a parent-based one follows the caller's decision", async () => {
  const caller = (flags: string) => `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-${flags}`;
  const kept = async (environment: Record<string, string>) => {
    const spans = await spansOf(async (tracing) => {
      for (const [name, parent] of [
        ["own", null],
        ["wanted", caller("01")],
        ["unwanted", caller("00")],
      ] as const)
        await tracing.within({ name, parent }, async () => {});
    }, environment);
    return spans.map(({ name }) => name).sort();
  };
  expect(await kept({})).toEqual(["own", "wanted"]);
  expect(await kept({ OTEL_TRACES_SAMPLER: "always_on" })).toEqual(["own", "unwanted", "wanted"]);
  expect(await kept({ OTEL_TRACES_SAMPLER: "always_off" })).toEqual([]);
  expect(await kept({ OTEL_TRACES_SAMPLER: "parentbased_always_off" })).toEqual(["wanted"]);
  const none = { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" };
  expect(await kept(none)).toEqual(["wanted"]);
});
