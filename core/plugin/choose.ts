import type { Transaction } from "../../drizzle/client.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { type Config, variables } from "../config.ts";
import type { ActivePlugin } from "./call.ts";
import { type InstalledPlugin, none } from "./check.ts";
import type { BuiltinDeps } from "./define.ts";
import { describeFault } from "./mask.ts";
import { optionalMethods, type PluginType, pluginMethods, pluginTypes } from "./methods.ts";
import type { PluginRegistry } from "./registry.ts";
import { namesOf, ownNames, readSettings, variableName } from "./settings.ts";

/** The plugins in use, as configured. */
export interface Plugins {
  /** In the configured order. */
  ofType<T extends PluginType>(type: T): readonly ActivePlugin<T>[];
  /** The plugin that created one of our resources, such as a document. Undefined if it is no longer selected. */
  find<T extends PluginType>(type: T, slug: string): ActivePlugin<T> | undefined;
}

/** The variable that selects the plugins of each type. */
const chooser = {
  "document-resolver": "pluginDocumentResolver",
  participant: "pluginParticipant",
  document: "pluginDocument",
  conversation: "pluginConversation",
  participant_group: "pluginParticipantGroup",
  term: "pluginTerm",
  application: "pluginApplication",
  credential: "pluginCredential",
} as const satisfies Record<PluginType, keyof Config>;

type Choice = Pick<Config, (typeof chooser)[PluginType] | "pluginTimeout">;

/**
 * Sets up the plugins that the configuration names.
 * @throws ConfigurationError with every fault at once: unknown slugs, with the alternatives; settings that are missing
 * or invalid; plugins that reject their configuration
 */
export async function choosePlugins(
  registry: PluginRegistry,
  config: Choice,
  environment: Environment,
  deps: BuiltinDeps,
): Promise<Plugins> {
  const faults: string[] = [];
  const active = new Map<PluginType, ActivePlugin[]>();
  for (const type of pluginTypes) {
    const { name: variable } = variables[chooser[type]];
    const choice = config[chooser[type]] ?? none;
    const slugs = choice === none ? [] : choice.split(",").map((slug) => slug.trim());
    for (const slug of new Set(slugs)) {
      const plugin = registry.ofType(type).find((one) => one.slug === slug);
      if (plugin === undefined) {
        faults.push(`${variable}: ${unknownSlug(registry, type, slug)}`);
        continue;
      }
      faults.push(...unknownVariables(registry, plugin, environment));
      const set = await setUp(plugin, variable, config, environment, deps);
      if ("faults" in set) faults.push(...set.faults);
      else active.set(type, [...(active.get(type) ?? []), set.plugin]);
    }
  }
  if (faults.length > 0) throw new ConfigurationError(faults);
  const ofType = <T extends PluginType>(type: T) =>
    Object.freeze([...(active.get(type) ?? [])]) as readonly ActivePlugin<T>[];
  return Object.freeze({
    ofType,
    find: <T extends PluginType>(type: T, slug: string) => ofType(type).find((one) => one.slug === slug),
  });
}

function unknownSlug(registry: PluginRegistry, type: PluginType, slug: string): string {
  const other = registry.find(slug);
  const problem = other ? `"${slug}" is a plugin of type ${other.type}` : `there is no plugin "${slug}"`;
  const there = registry.ofType(type).map((plugin) => plugin.slug);
  return `${problem}; plugins of type ${type}: ${there.join(", ") || "none"}`;
}

/** Finds misspelt variables, which would otherwise be ignored silently. Those of an unselected plugin are allowed. */
function unknownVariables(
  registry: PluginRegistry,
  { slug, settings }: InstalledPlugin,
  environment: Environment,
): string[] {
  const known = new Set([...ownNames, ...registry.all.flatMap((plugin) => plugin.settings.flatMap(namesOf))]);
  const prefix = variableName(slug, "");
  const there = settings.map(({ name }) => name).join(", ") || "none";
  return Object.keys(environment)
    .filter((name) => name.startsWith(prefix) && !known.has(name) && environment[name])
    .sort()
    .map((name) => `${name}: plugin ${slug} has no such variable; it has ${there}`);
}

async function setUp(
  plugin: InstalledPlugin,
  variable: string,
  { pluginTimeout }: Choice,
  environment: Environment,
  deps: BuiltinDeps,
): Promise<{ plugin: ActivePlugin } | { faults: string[] }> {
  const { config, secrets, faults } = readSettings(environment, plugin.settings);
  if (faults.length > 0) return { faults };
  const { slug, title, type, origin } = plugin;
  const refuse = (text: string) => ({ faults: [`${variable}: plugin ${slug} of ${origin} ${text}`] });
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(() => resolve("late"), pluginTimeout * 1000);
  let made: unknown;
  try {
    const { context, ...common } = deps;
    // A copy for each plugin, so that none can change what another gets.
    const handed = plugin.builtin ? { ...deps } : (common as BuiltinDeps);
    const create = (async () => ({ methods: await plugin.create({ ...config }, handed) }))();
    const result = await Promise.race([create, late]);
    if (result === "late") return refuse(`was not set up within ${pluginTimeout} s`);
    made = result.methods;
  } catch (error) {
    return refuse(`cannot be set up: ${describeFault(error, secrets)}`);
  } finally {
    clearTimeout(timer);
  }
  const { methods, missing } = methodsOf(type, made);
  if (missing.length > 0) return refuse(`is of type ${type} and has no method ${missing.join(", ")}`);
  const timeoutMilliseconds = pluginTimeout * 1000;
  const { roleSettings, revocable, publicKey } = plugin;
  const methodsWithin = (db: Transaction) => {
    const within = { ...deps, context: { ...deps.context, db } };
    return methodsOf(type, plugin.create({ ...config }, within)).methods;
  };
  const common = { slug, title, type, methods, secrets, timeoutMilliseconds };
  const more = { roleSettings, revocable, publicKey, ...(plugin.inDatabase && { methodsWithin }) };
  return { plugin: Object.freeze({ ...common, ...more }) };
}

/** The plugin's methods, read once. */
function methodsOf(type: PluginType, made: unknown) {
  const methods: Record<string, (call: object) => unknown> = {};
  const missing: string[] = [];
  for (const name of Object.keys(pluginMethods[type])) {
    const method = property(made, name);
    if (typeof method === "function") methods[name] = (call) => method.call(made, call);
    else if (!optionalMethods.has(`${type}.${name}`)) missing.push(name);
  }
  return { methods, missing };
}

function property(object: unknown, name: string): unknown {
  try {
    return (object as Record<string, unknown> | undefined | null)?.[name];
  } catch {
    return undefined;
  }
}
