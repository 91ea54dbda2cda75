import { ConfigurationError } from "../../platform/errors.ts";
import { checkPlugin, type InstalledPlugin } from "./check.ts";
import { type PluginType, pluginTypes } from "./methods.ts";
import type { PluginPackage } from "./package.ts";
import { namesOf, ownNames } from "./settings.ts";

/** Where plugins come from: a package's name and its exports. */
export interface PluginSource {
  origin: string;
  /** A plugin or a list of plugins. From a third party it may be anything. */
  exported: unknown;
  builtin?: boolean;
  /** Its processes, if it has any. */
  opened?: PluginPackage;
}

/** Every known plugin, selected or not. */
export interface PluginRegistry {
  /** By type in the order of `pluginTypes`, then by slug. */
  readonly all: readonly InstalledPlugin[];
  find(slug: string): InstalledPlugin | undefined;
  ofType(type: PluginType): readonly InstalledPlugin[];
}

/**
 * Checks the plugins of all sources and combines them.
 * @throws ConfigurationError with every fault of every package
 */
export function createRegistry(sources: readonly PluginSource[]): PluginRegistry {
  const faults: string[] = [];
  const bySlug = new Map<string, InstalledPlugin>();
  const names = new Map<string, string>([...ownNames].map((name) => [name, "svc itself"]));
  for (const source of sources) {
    const { origin, exported } = source;
    const candidates = candidatesOf(exported);
    if (candidates === undefined || candidates.length === 0) {
      faults.push(`${origin}: its default export is neither a plugin nor a list of plugins`);
      continue;
    }
    for (const candidate of candidates) {
      const { plugin, faults: found } = checkPlugin(candidate, source);
      faults.push(...found);
      if (plugin === undefined) continue;
      const other = bySlug.get(plugin.slug);
      if (other) {
        faults.push(`${origin}: the slug ${plugin.slug} is taken by a plugin of ${other.origin}`);
        continue;
      }
      bySlug.set(plugin.slug, plugin);
      // Two settings may have the same variable name: key c of a-b, and key bC of a.
      for (const name of plugin.settings.flatMap(namesOf)) {
        const owner = names.get(name);
        if (owner) faults.push(`${origin}: plugin ${plugin.slug}: ${name} is a variable of ${owner} already`);
        else names.set(name, `plugin ${plugin.slug}`);
      }
    }
  }
  if (faults.length > 0) throw new ConfigurationError(faults);
  const all = pluginTypes.flatMap((type) =>
    [...bySlug.values()].filter((plugin) => plugin.type === type).sort((a, b) => (a.slug < b.slug ? -1 : 1)),
  );
  return Object.freeze({
    all,
    find: (slug: string) => bySlug.get(slug),
    ofType: (type: PluginType) => all.filter((plugin) => plugin.type === type),
  });
}

function candidatesOf(exported: unknown): unknown[] | undefined {
  try {
    if (Array.isArray(exported)) return exported.slice(0, 100);
  } catch {
    return undefined; // a proxy that throws
  }
  return typeof exported === "object" && exported !== null ? [exported] : undefined;
}
