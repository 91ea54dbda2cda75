import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigurationError } from "../errors.ts";
import { hasSourceTree } from "../source_tree.ts";
import { describeFault, shown } from "./mask.ts";
import type { PluginSource } from "./registry.ts";

/** https://docs.npmjs.com/cli/configuring-npm/package-json#name; no path and no address: those may be anybody's. */
const packageName = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

export interface LoadOptions {
  /** Where packages are looked for, as Node does: in `node_modules` here and in the folders above. */
  directory: string;
  /** How long a package may take until it is loaded. */
  milliseconds?: number;
}

/**
 * Loads the packages of third parties that `SVC_PLUGIN_PACKAGES` names. Their code runs with all that this process may do;
 * naming a package is trusting it.
 *
 * @throws ConfigurationError with every package that is not there or does not load
 */
export async function loadPackages(
  list: string | undefined,
  { directory, milliseconds = 10_000 }: LoadOptions,
): Promise<PluginSource[]> {
  const names = [...new Set((list ?? "").split(",").map((name) => name.trim()))].filter(
    (name) => name !== "",
  );
  if (names.length > 0 && !hasSourceTree) {
    // It is built to read no package.json, so it would load index.js whatever the package says.
    throw new ConfigurationError([
      "SVC_PLUGIN_PACKAGES: the single executable cannot load packages: run svc from its source tree",
    ]);
  }
  const faults: string[] = [];
  const causes: unknown[] = [];
  const sources: PluginSource[] = [];
  for (const name of names) {
    const fault = (text: string) => faults.push(`SVC_PLUGIN_PACKAGES: ${shown(name, [], 100)}: ${text}`);
    if (!packageName.test(name) || name.length > 214) {
      fault("this is no name of an npm package");
      continue;
    }
    // Looked for by hand first: where nothing is installed, Bun would fetch a missing package from the registry.
    const folder = findPackage(name, directory);
    if (folder === undefined) {
      fault(`it is not installed: npm install ${name}, in ${resolve(directory)}`);
      continue;
    }
    const entry = entryOf(name, folder);
    if (entry === undefined) {
      fault("its package.json names no file to load");
      continue;
    }
    try {
      const loaded = await within(milliseconds, import(pathToFileURL(entry).href));
      if (loaded === undefined) fault(`it did not load within ${milliseconds / 1000} s`);
      else sources.push({ origin: name, exported: (loaded as { default?: unknown }).default });
    } catch (error) {
      fault(`it cannot be loaded (${describeFault(error)})`);
      causes.push(error);
    }
  }
  if (faults.length > 0) throw new ConfigurationError(faults, { cause: causes[0] });
  return sources;
}

function findPackage(name: string, directory: string): string | undefined {
  for (let at = resolve(directory); ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (existsSync(join(folder, "package.json"))) return folder;
    if (at === dirname(at)) return undefined;
  }
}

/** The file behind the package's name: `exports` and `main`, as the resolver reads them. */
function entryOf(name: string, folder: string): string | undefined {
  try {
    // Broken JSON would be passed over, and index.js taken for what was meant.
    JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const above = folder.slice(0, folder.length - join("node_modules", name).length);
    return Bun.resolveSync(name, above);
  } catch {
    return undefined;
  }
}

/** What it resolves to; undefined when it takes longer. */
async function within<T>(milliseconds: number, work: Promise<T>): Promise<T | undefined> {
  const { promise, resolve: stop } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => stop(undefined), milliseconds);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
