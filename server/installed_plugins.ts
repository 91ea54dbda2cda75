import { loadPackages } from "../core/plugin/load.ts";
import { createRegistry, type PluginRegistry } from "../core/plugin/registry.ts";
import { type Environment, readVariable } from "../platform/variable.ts";
import { builtinPlugins } from "../plugins/builtin.ts";

/**
 * Every plugin that there is, our own and those of packages. No other variable is looked at: what there is can be seen
 * before the rest of the configuration is right.
 *
 * @throws ConfigurationError for a package that cannot be
 */
export async function installedPlugins(environment: Environment): Promise<PluginRegistry> {
  const { text } = readVariable(environment, "SVC_PLUGIN_PACKAGES", false);
  const packages = await loadPackages(text, { directory: process.cwd(), environment });
  try {
    return createRegistry([{ origin: "svc", exported: builtinPlugins, builtin: true }, ...packages]);
  } finally {
    for (const { opened } of packages) opened?.close();
  }
}
