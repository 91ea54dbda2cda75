import type { Telemetry } from "../../platform/telemetry/telemetry.ts";
import type { ActivePlugin, Around } from "./call.ts";
import type { Plugins } from "./choose.ts";
import type { PluginType } from "./methods.ts";

/** Returns the same plugins, with the duration and outcome of each call recorded. */
export function observePlugins(plugins: Plugins, { meter, tracing }: Telemetry): Plugins {
  const duration = meter?.createHistogram("svc_plugin_call_duration_seconds", {
    description: "Calls to plugins, by outcome",
    unit: "s",
    advice: { explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] },
  });
  const aroundOf =
    ({ slug: plugin }: ActivePlugin): Around =>
    async (method, call) => {
      const began = performance.now();
      const attributes = { plugin, method };
      const run = async () => {
        const outcome = await call();
        const seconds = (performance.now() - began) / 1000;
        duration?.record(seconds, { ...attributes, outcome: outcome.ok ? "ok" : outcome.reason });
        return outcome;
      };
      if (!tracing) return await run();
      return await tracing.within(
        { name: `${plugin} ${method}`, kind: "client", attributes },
        async (span) => {
          const outcome = await run();
          if (!outcome.ok) span.failed(outcome.reason);
          return outcome;
        },
      );
    };
  const observed = new WeakMap<ActivePlugin, ActivePlugin>();
  const observe = <T extends PluginType>(plugin: ActivePlugin<T>): ActivePlugin<T> => {
    const known = observed.get(plugin) ?? Object.freeze({ ...plugin, around: aroundOf(plugin) });
    observed.set(plugin, known);
    return known as ActivePlugin<T>;
  };
  return {
    ofType: (type) => plugins.ofType(type).map(observe),
    find: (type, slug) => {
      const found = plugins.find(type, slug);
      return found && observe(found);
    },
  };
}
