import { namesOf, ownNames, type Setting } from "../core/plugin/settings.ts";
import type { Environment } from "../platform/variable.ts";
import { installedPlugins } from "./installed_plugins.ts";

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
