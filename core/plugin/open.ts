import type { Environment } from "../../platform/variable.ts";
import type { Config } from "../config.ts";
import { choosePlugins, type Plugins } from "./choose.ts";
import type { BuiltinDeps, Plugin } from "./define.ts";
import { loadPackages } from "./load.ts";
import { createRegistry, type PluginRegistry } from "./registry.ts";

/**
 * All that a program does about plugins when it starts: load the packages, look at what there is, set up what is chosen.
 * `close` ends the processes of packages.
 *
 * @throws ConfigurationError of the first of these steps that finds faults, with all that it finds
 */
export async function openPlugins(options: {
  config: Config;
  environment: Environment;
  /** Those of plugins/builtin.ts; core knows no plugin by itself. */
  builtin: readonly Plugin[];
  /** Where packages are looked for: the working directory. */
  directory: string;
  deps: BuiltinDeps;
}): Promise<{ registry: PluginRegistry; plugins: Plugins; close: () => void }> {
  const { config, environment, builtin, directory, deps } = options;
  const { pluginMemory: memory } = config;
  const packages = await loadPackages(config.pluginPackages, {
    ...{ directory, environment, memory, log: deps.log },
  });
  const close = () => {
    for (const { opened } of packages) opened?.close();
  };
  try {
    const registry = createRegistry([{ origin: "svc", exported: builtin, builtin: true }, ...packages]);
    const plugins = await choosePlugins(registry, config, environment, deps);
    for (const { opened } of packages) if (!opened?.used) opened?.close();
    return { registry, plugins, close };
  } catch (error) {
    close();
    throw error;
  }
}
