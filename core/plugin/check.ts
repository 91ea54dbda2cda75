import { type BuiltinDeps, readDefinition } from "./define.ts";
import { masked } from "./mask.ts";
import { type PluginType, pluginTypes } from "./methods.ts";
import type { PluginSource } from "./registry.ts";
import { type CertifiedKey, type Revocable, type Setting, settingsOf } from "./settings.ts";

/** A plugin that has passed the checks. Its values are plain and read once, so they cannot change later. */
export interface InstalledPlugin {
  readonly title: string;
  readonly slug: string;
  readonly version: string;
  readonly type: PluginType;
  readonly author: string;
  readonly description: string;
  readonly settings: readonly Setting[];
  readonly roleSettings: readonly Setting[];
  readonly revocable: Revocable;
  readonly publicKey: CertifiedKey | undefined;
  /** The package that contains it. */
  readonly origin: string;
  /** Whether it is built in, and therefore gets more dependencies than a third-party plugin. */
  readonly builtin: boolean;
  /** As in `defineBuiltin`. */
  readonly inDatabase: boolean;
  readonly create: (config: Record<string, unknown>, deps: BuiltinDeps) => unknown;
}

/** Selected in place of slugs, it disables a plugin type. */
export const none = "none";

export const longestSlug = 40;
export const slugPattern = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const versionPattern = /^\d+(\.\d+)+(-[0-9A-Za-z.-]+)?$/;

/**
 * Checks an object that claims to be a plugin. It may be anything: another shape, getters that throw, terminal escapes
 * in its title. Every fault is reported, and names `origin` and the plugin.
 */
export function checkPlugin(
  candidate: unknown,
  { origin, builtin = false }: Pick<PluginSource, "origin" | "builtin">,
): { plugin?: InstalledPlugin; faults: string[] } {
  const read = readDefinition(candidate);
  if (read === undefined) return { faults: [`${origin}: it contains something that is not a plugin`] };
  const faults: string[] = [];
  const text = (key: keyof typeof read, limit: number): string => {
    const value = read[key];
    if (typeof value !== "string" || value.trim() === "") faults.push(`it has no ${key}`);
    else if (value.length > limit) faults.push(`its ${key} has more than ${limit} characters`);
    else if (masked(value, [], limit) !== value)
      faults.push(`its ${key} is not one line of printable characters`);
    else return value;
    return "";
  };
  const title = text("title", 80);
  const slug = text("slug", longestSlug);
  const version = text("version", 40);
  const type = text("type", 40);
  const author = text("author", 80);
  const description = text("description", 200);
  if (slug && !slugPattern.test(slug)) {
    faults.push(`its slug "${slug}" must consist of lower-case letters, digits and single hyphens`);
  }
  if (slug === none) faults.push(`its slug "${none}" is reserved`);
  if (version && !versionPattern.test(version)) faults.push(`its version "${version}" must look like 1.0.0`);
  if (type && !isType(type)) faults.push(`its type "${type}" must be one of ${pluginTypes.join(", ")}`);
  const { settings, faults: settingFaults } = settingsOf(slug, read.configSchema);
  faults.push(...settingFaults);
  const ofRole = settingsOf(slug, read.roleSchema ?? { type: "object" });
  faults.push(...ofRole.faults.map((fault) => fault.replace(/^configSchema/, "roleSchema")));
  const { revocable = "now", publicKey, create } = read;
  if (revocable !== "now" && revocable !== "expiry") faults.push(`revocable is neither "now" nor "expiry"`);
  if (publicKey !== undefined && publicKey !== "ssh" && publicKey !== "x509")
    faults.push(`publicKey is neither "ssh" nor "x509"`);
  if (typeof create !== "function") faults.push("create is not a function");
  if (faults.length > 0 || !isType(type) || typeof create !== "function") {
    const which = slug && slugPattern.test(slug) ? `${origin}: plugin ${slug}` : `${origin}: a plugin`;
    return { faults: faults.map((fault) => `${which}: ${fault}`) };
  }
  const call = (config: Record<string, unknown>, deps: BuiltinDeps): unknown =>
    create.call(candidate, config, deps);
  const inDatabase = builtin && read.inDatabase === true;
  const facts = { title, slug, version, type, author, description, settings, origin, builtin, inDatabase };
  const plugin = {
    ...facts,
    roleSettings: ofRole.settings,
    revocable: revocable as Revocable,
    publicKey: publicKey as CertifiedKey | undefined,
    create: call,
  };
  return { plugin: Object.freeze(plugin), faults: [] };
}

function isType(type: string): type is PluginType {
  return (pluginTypes as string[]).includes(type);
}
