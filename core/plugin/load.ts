import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import { hasSourceTree } from "../../platform/own_command.ts";
import type { Environment } from "../../platform/variable.ts";
import type { PluginLog } from "./define.ts";
import { describeFault, masked } from "./mask.ts";
import { PluginPackage } from "./package.ts";
import type { PluginSource } from "./registry.ts";

/**
 * https://docs.npmjs.com/cli/configuring-npm/package-json#name. Paths and addresses are excluded: they could be
 * anyone's.
 */
const packageName = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

export interface LoadOptions {
  /** Where packages are looked up, as in Node: in `node_modules` here and in the folders above. */
  directory: string;
  /** Packages see only a few of these variables (process.ts). */
  environment: Environment;
  /** How long a package may take to load. */
  milliseconds?: number;
  /** MiB that each process of a package may allocate. */
  memory?: number;
  log?: PluginLog;
}

/**
 * Loads the third-party packages that `SVC_PLUGIN_PACKAGES` names, each in a separate process, so that a package's
 * mistakes harm only itself. This is not a sandbox: a package has our user's files and network, so name only packages
 * you trust.
 *
 * @throws ConfigurationError with every package that is missing or does not load
 */
export async function loadPackages(
  list: string | undefined,
  { directory, environment, milliseconds = 10_000, memory = 512, log }: LoadOptions,
): Promise<PluginSource[]> {
  const names = [...new Set((list ?? "").split(",").map((name) => name.trim()))].filter(
    (name) => name !== "",
  );
  if (names.length > 0 && !hasSourceTree) {
    // The executable is built not to read package.json, so it would load index.js whatever the package says.
    throw new ConfigurationError([
      "SVC_PLUGIN_PACKAGES: the single executable cannot load packages: run svc from its source tree",
    ]);
  }
  const load = async (name: string): Promise<PluginSource | { fault: string; cause?: unknown }> => {
    if (!packageName.test(name) || name.length > 214)
      return { fault: "this is not the name of an npm package" };
    // Looked up by hand first: if nothing is installed, Bun would fetch a missing package from the registry.
    const folder = findPackage(name, directory);
    if (folder === undefined)
      return { fault: `it is not installed: npm install ${name}, in ${resolve(directory)}` };
    const entry = entryOf(name, folder);
    if (entry === undefined) return { fault: "its package.json names no file to load" };
    const late = AbortSignal.timeout(milliseconds);
    try {
      const options = { name, entry, directory, environment, memory, log };
      const { exported, opened } = await PluginPackage.load(options, late);
      return { origin: name, exported, opened };
    } catch (cause) {
      if (late.aborted) return { fault: `it did not load within ${milliseconds / 1000} s`, cause };
      return { fault: `it cannot be loaded (${describeFault(cause)})`, cause };
    }
  };
  const loaded = await Promise.all(names.map(load));
  const sources = loaded.filter((one) => "origin" in one);
  if (sources.length === loaded.length) return sources;
  for (const { opened } of sources) opened?.close();
  const faults = names.flatMap((name, at) => {
    const one = loaded[at]!;
    return "fault" in one ? [`SVC_PLUGIN_PACKAGES: ${masked(name, [], 100)}: ${one.fault}`] : [];
  });
  const causes = loaded.flatMap((one) => ("cause" in one && one.cause ? [one.cause] : []));
  throw new ConfigurationError(faults, { cause: causes[0] });
}

function findPackage(name: string, directory: string): string | undefined {
  for (let at = resolve(directory); ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (existsSync(join(folder, "package.json"))) return folder;
    if (at === dirname(at)) return undefined;
  }
}

/** The file that the package's name resolves to, from `exports` and `main`. */
function entryOf(name: string, folder: string): string | undefined {
  try {
    // With broken JSON, the resolver would silently fall back to index.js.
    JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const above = folder.slice(0, folder.length - join("node_modules", name).length);
    return Bun.resolveSync(name, above);
  } catch {
    return undefined;
  }
}
