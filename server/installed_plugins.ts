import { loadPackages } from "../core/plugin/load.ts";
import { createRegistry, type PluginRegistry } from "../core/plugin/registry.ts";
import { namesOf, ownNames, type Setting } from "../core/plugin/settings.ts";
import { type Environment, readVariable } from "../platform/variable.ts";
import { builtinPlugins } from "../plugins/builtin.ts";

/**
 * Lists every installed plugin: ours and those of packages. It reads no other variable, so that plugins can be listed
 * before the rest of the configuration is valid.
 *
 * @throws ConfigurationError for a package that cannot be loaded
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

/**
 * Lists the variables of every installed plugin, and the names of all variables in use.
 * @throws ConfigurationError for a package that cannot be loaded
 */
export async function knownVariables(
  environment: Environment,
): Promise<{ settings: Setting[]; names: string[] }> {
  const { all } = await installedPlugins(environment);
  const settings = all.flatMap((plugin) => plugin.settings);
  return { settings, names: [...ownNames, ...settings.flatMap(namesOf)] };
}
