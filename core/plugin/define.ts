import type { Static, TObject } from "@sinclair/typebox";
import type { Clock } from "../../platform/clock.ts";
import type { Context } from "../context.ts";
import type { PluginMethods, PluginType } from "./methods.ts";
import type { Revocable } from "./settings.ts";

/** Where a plugin tells an operator something. Facts first: never a secret, nor a text that may hold one. */
export interface PluginLog {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** The outside world, as far as a plugin gets it from us. */
export interface PluginDeps {
  fetch: (url: string, init?: RequestInit) => Promise<Response>;
  clock: Clock;
  log: PluginLog;
}

/** Those that come with the service keep their things in its database; a plugin of a third party is not handed it. */
export interface BuiltinDeps extends PluginDeps {
  context: Context;
}

export interface PluginDefinition<T extends PluginType = PluginType, S extends TObject = TObject> {
  /** For people, in lists. */
  title: string;
  /** Lower-case words with hyphens. It stays: the database remembers what a plugin has made by it. */
  slug: string;
  /** Dotted: `1.0.0`. */
  version: string;
  type: T;
  author: string;
  description: string;
  /**
   * What can be set, each as the variable `SVC_PLUGIN_<SLUG>_<KEY>`: a TypeBox object, or the same as JSON Schema.
   * Properties are strings, numbers and booleans; `secret: true` has a value masked and lets it stand in a file.
   */
  configSchema: S;
  /** Of a plugin of type credential: what can be set of each access role, described like `configSchema`. */
  roleSchema?: TObject;
  /** Of a plugin of type credential: what it issued ends when svc says so (the default), or only when it expires. */
  revocable?: Revocable;
  /** Called once for a plugin that is chosen, with a configuration that passed. It throws what is wrong with it. */
  create(config: Static<S>, deps: PluginDeps): PluginMethods[T] | Promise<PluginMethods[T]>;
}

/** A plugin of some type. What it takes and returns is checked where it is used, not by the compiler. */
export interface Plugin extends Omit<PluginDefinition, "create"> {
  // A method, so that a plugin with a configuration of its own is a plugin.
  create(config: never, deps: BuiltinDeps): unknown;
}

/** As `definePlugin`, for a plugin that comes with the service. */
export function defineBuiltin<const T extends PluginType, S extends TObject>(
  definition: Omit<PluginDefinition<T, S>, "create"> & {
    create(config: Static<S>, deps: BuiltinDeps): PluginMethods[T] | Promise<PluginMethods[T]>;
  },
): Plugin {
  return definition;
}

/** Types `config` of `create` from `configSchema`, and what it returns from `type`. */
export function definePlugin<const T extends PluginType, S extends TObject>(
  definition: PluginDefinition<T, S>,
): PluginDefinition<T, S> {
  return definition;
}
