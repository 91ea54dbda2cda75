import type { Environment } from "../../platform/variable.ts";
import type { Config } from "../config.ts";
import { choosePlugins, type Plugins } from "./choose.ts";
import type { BuiltinDeps, Plugin } from "./define.ts";
import { loadPackages } from "./load.ts";
import { createRegistry, type PluginRegistry } from "./registry.ts";

/**
 * Prepares the plugins when a program starts: loads the packages, checks every plugin, sets up the selected ones.
 * `close` ends the processes of packages.
 *
 * @throws ConfigurationError with all faults of the first step that finds any
 */
export async function openPlugins(options: {
  config: Config;
  environment: Environment;
  /** From plugins/builtin.ts, because core does not depend on plugins. */
  builtin: readonly Plugin[];
  /** Where packages are looked up: the working directory. */
  directory: string;
  deps: BuiltinDeps;
}): Promise<{ registry: PluginRegistry; plugins: Plugins; close: () => void }> {
  const { config, environment, builtin, directory, deps } = options;
  const { pluginMemory: memory } = config;
  const packages = await loadPackages(config.pluginPackages, {
    directory,
    environment,
    memory,
    log: deps.log,
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
