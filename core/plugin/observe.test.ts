import { expect, test } from "bun:test";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { attributeOf, startCollector } from "../../tests/support/collector.ts";
import { valuesOf } from "../../tests/support/http/exposition.ts";
import { startTestTelemetry } from "../../tests/support/telemetry.ts";
import { callPlugin } from "./call.ts";
import { observePlugins } from "./observe.ts";

const incident = {
  id: 7,
  name: "INC-7",
  title: "Disk full",
  description: "",
  status: "Active",
};

test("records each call with the outcome that the caller sees, not the plugin's own", async () => {
  using collector = startCollector();
  await using started = await startTestTelemetry({
    METRIC_PROVIDERS: "prometheus",
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
  });
  const never = () => new Promise<never>(() => {});
  using fake = fakeConversation(
    {
      direct: [
        () => {},
        () => {
          throw new Error("a secret");
        },
        never,
      ],
    },
    { slug: "mail", timeoutMilliseconds: 50 },
  );
  const plugins = observePlugins(pluginsOf(fake), started.telemetry);
  const plugin = plugins.find("conversation", "mail")!;
  expect(plugins.ofType("conversation")).toEqual([plugin]);
  const input = { person: { name: "Alice" }, message: { subject: "s", text: "t" }, incident };
  const reasons: string[] = [];
  for (const _ of [1, 2, 3]) {
    const outcome = await callPlugin(plugin, "direct", input as never);
    reasons.push(outcome.ok ? "ok" : outcome.reason);
  }
  expect(reasons).toEqual(["ok", "failed", "timeout"]);
  const families = await started.scrape();
  for (const outcome of reasons) {
    const labels = { plugin: "mail", method: "direct", outcome };
    expect(valuesOf(families, "svc_plugin_call_duration_seconds_count", labels)).toEqual([1]);
  }
  await started.telemetry.stop();
  const spans = collector.spans();
  expect(spans.map(({ name, kind, status }) => [name, kind, status.code])).toEqual([
    ["mail direct", 3, 0],
    ["mail direct", 3, 2],
    ["mail direct", 3, 2],
  ]);
  expect(attributeOf(spans[2]!, "error.type")).toBe("timeout");
  expect(JSON.stringify(collector.received)).not.toContain("a secret");
  expect(JSON.stringify(collector.received)).not.toContain("Alice");
});
