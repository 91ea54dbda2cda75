import type { Background } from "../../platform/background.ts";
import type { Context } from "../context.ts";
import type { Plugins } from "./choose.ts";

/**
 * For operations that also call plugins. Never call a plugin inside a transaction, since it may take half a minute, unless
 * it uses nothing but our database (`ActivePlugin.methodsWithin`).
 */
export interface AppContext extends Context {
  plugins: Plugins;
  /** Runs work that a request does not wait for. Absent in programs that only read. */
  background?: Background;
}
