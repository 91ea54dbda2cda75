import { expect, test } from "bun:test";
import { join } from "node:path";
import { recordLeaseIssue } from "../core/access/issue_duration.ts";
import { challengeCounter } from "../core/auth/challenge/outcomes.ts";
import { observePlugins } from "../core/plugin/observe.ts";
import { watchPools } from "../drizzle/connection/telemetry.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { ObservedRequests } from "../server/http/metrics.ts";
import { joinMetrics } from "../server/metrics/join.ts";
import { StreamMetrics } from "../server/stream/streams.ts";
import { ObservedSchedule } from "../worker/metrics.ts";
import { parseExposition, valuesOf } from "./support/http/exposition.ts";
import { startTestTelemetry } from "./support/telemetry.ts";

const page = await Bun.file(join(import.meta.dir, "../docs/observability.md")).text();

/** The metrics of the page's tables. */
const documented = new Set(
  [...page.matchAll(/^\| `((?:svc|db|http|process)_[a-z_]+)` \|/gm)].map(([, name]) => name),
);

test("docs/observability.md lists all metrics, and no others", async () => {
  await using started = await startTestTelemetry();
  const made = new Set<string>(["svc_worker_up"]);
  const { meter } = started.telemetry;
  // The metrics of every program.
  const families = await started.scrape();
  for (const name of families.keys()) made.add(name);
  made.add("svc_event_loop_delay_seconds");
  const noting = new Proxy(meter!, {
    get: (target, key) => {
      const create = Reflect.get(target, key).bind(target);
      return (name: string, ...rest: unknown[]) => {
        made.add(name.replaceAll(".", "_"));
        return create(name, ...rest);
      };
    },
  });
  const telemetry = { ...started.telemetry, meter: noting };
  watchPools(telemetry);
  observePlugins(pluginsOf(), telemetry);
  challengeCounter(noting);
  new ObservedRequests(telemetry);
  new StreamMetrics(noting);
  recordLeaseIssue(telemetry, 1, "issued");
  new ObservedSchedule(telemetry, {
    schedule: () => {
      throw new Error("nobody asks");
    },
  });
  expect([...made].sort()).toEqual([...documented].sort() as string[]);
  expect(valuesOf(parseExposition(joinMetrics(["", undefined])), "svc_worker_up")).toEqual([1, 0]);
});
