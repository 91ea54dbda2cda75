import type { Environment } from "../core/config.ts";
import { loadPackages } from "../core/plugin/load.ts";
import { createRegistry } from "../core/plugin/registry.ts";
import { namesOf, ownNames, type Setting } from "../core/plugin/settings.ts";
import { readVariable } from "../core/variable.ts";
import { builtinPlugins } from "../plugins/builtin.ts";

/**
 * The variables of every plugin that is installed, and the names of all variables that anything here reads.
 * @throws ConfigurationError for a package that cannot be
 */
export async function knownVariables(
  environment: Environment,
): Promise<{ settings: Setting[]; names: string[] }> {
  const { text } = readVariable(environment, "SVC_PLUGIN_PACKAGES", false);
  const packages = await loadPackages(text, { directory: process.cwd() });
  const { all } = createRegistry([{ origin: "svc", exported: builtinPlugins, builtin: true }, ...packages]);
  const settings = all.flatMap((plugin) => plugin.settings);
  return { settings, names: [...ownNames, ...settings.flatMap(namesOf)] };
}
