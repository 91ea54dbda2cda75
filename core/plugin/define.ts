import type { Static, TObject } from "@sinclair/typebox";
import type { Clock } from "../../platform/clock.ts";
import type { Context } from "../context.ts";
import type { PluginMethods, PluginType } from "./methods.ts";
import type { CertifiedKey, Revocable } from "./settings.ts";

/** Where a plugin logs for operators. Facts first: never a secret, nor a text that may contain one. */
export interface PluginLog {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** The outside world, as a plugin gets it from us. */
export interface PluginDeps {
  fetch: (url: string, init?: RequestInit) => Promise<Response>;
  clock: Clock;
  log: PluginLog;
}

/** Built-in plugins keep their data in our database. Third-party plugins do not get it. */
export interface BuiltinDeps extends PluginDeps {
  context: Context;
}

export interface PluginDefinition<T extends PluginType = PluginType, S extends TObject = TObject> {
  /** Shown to people, in lists. */
  title: string;
  /** Lower-case words with hyphens. It must not change: the database uses it to identify what the plugin created. */
  slug: string;
  /** Three numbers with dots, such as `1.0.0`. */
  version: string;
  type: T;
  author: string;
  description: string;
  /**
   * The plugin's settings, each set by the variable `SVC_PLUGIN_<SLUG>_<KEY>`: a TypeBox object, or the same as JSON
   * Schema. Properties are strings, numbers and booleans. `secret: true` masks the value and allows reading it from a
   * file.
   */
  configSchema: S;
  /** For type credential: the settings of each access role, described like `configSchema`. */
  roleSchema?: TObject;
  /** For type credential: an issued credential ends when svc revokes it (the default), or only when it expires. */
  revocable?: Revocable;
  /** For type credential: `issue` certifies a public key of this kind, which `svc` generates for the user. */
  publicKey?: CertifiedKey;
  /** Called once for a selected plugin, with a valid configuration. Throws if the plugin cannot use it. */
  create(config: Static<S>, deps: PluginDeps): PluginMethods[T] | Promise<PluginMethods[T]>;
}

/** A plugin of any type. Its inputs and answers are checked at run time, not by the compiler. */
export interface Plugin extends Omit<PluginDefinition, "create"> {
  // A method, so that a plugin with any type of configuration is assignable.
  create(config: never, deps: BuiltinDeps): unknown;
}

const properties = [
  ...(["title", "slug", "version", "type", "author", "description"] as const),
  ...(["configSchema", "roleSchema", "revocable", "publicKey", "create", "inDatabase"] as const),
];
type Candidate = Record<(typeof properties)[number], unknown>;

/** Reads an object that claims to be a plugin, each property once. Returns undefined if it cannot be read. */
export function readDefinition(candidate: unknown): Candidate | undefined {
  if (typeof candidate !== "object" || candidate === null) return undefined;
  try {
    return Object.fromEntries(properties.map((key) => [key, (candidate as Candidate)[key]])) as Candidate;
  } catch {
    return undefined; // a getter threw
  }
}

/** Like `definePlugin`, for a built-in plugin. */
export function defineBuiltin<const T extends PluginType, S extends TObject>(
  definition: Omit<PluginDefinition<T, S>, "create"> & {
    create(config: Static<S>, deps: BuiltinDeps): PluginMethods[T] | Promise<PluginMethods[T]>;
    /**
     * Its methods use nothing but `context.db`, so they may be called within a transaction. `create` returns them at
     * once, because it is called again for each transaction.
     */
    inDatabase?: true;
  },
): Plugin {
  return definition;
}

/** Infers the type of `create`'s `config` from `configSchema`, and of its result from `type`. */
export function definePlugin<const T extends PluginType, S extends TObject>(
  definition: PluginDefinition<T, S>,
): PluginDefinition<T, S> {
  return definition;
}
