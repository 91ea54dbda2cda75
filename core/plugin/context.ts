import type { Background } from "../../platform/background.ts";
import type { Context } from "../context.ts";
import type { Plugins } from "./choose.ts";

/** For verbs that also ask plugins. A plugin is never called inside a transaction: it may take half a minute. */
export interface PluginContext extends Context {
  plugins: Plugins;
  /** Where work goes on that a request does not wait for; in a program that only asks, nowhere. */
  background?: Background;
}
