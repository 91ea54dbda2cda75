import { Unavailable } from "../platform/errors.ts";
import { type ActivePlugin, callPlugin } from "../core/plugin/call.ts";
import type { MethodAnswer, MethodInput, MethodName, PluginType } from "../core/plugin/methods.ts";
import type { TaskContext } from "./task.ts";

/** So often in a row a plugin may let us wait in vain. */
const patience = 3;

/**
 * Asks plugins in the name of a run. One that has let it wait for several answers in a row is asked no more by it, so that
 * many items of a plugin that hangs cost no more time than a few.
 */
export class Asking {
  readonly #waits = new Map<string, number>();

  constructor(private readonly context: Pick<TaskContext, "log" | "signal">) {}

  /** @throws Unavailable when the plugin fails, in words for people */
  async ask<T extends PluginType, M extends MethodName<T>>(
    plugin: ActivePlugin<T>,
    method: M,
    input: MethodInput<T, M>,
  ): Promise<MethodAnswer<T, M>> {
    const { log, signal } = this.context;
    const { slug } = plugin;
    if ((this.#waits.get(slug) ?? 0) >= patience)
      throw new Unavailable(`${slug} was not asked any more: it did not answer ${patience} times in a row`);
    const outcome = await callPlugin(plugin, method, input, { signal });
    if (outcome.ok) {
      this.#waits.set(slug, 0);
      return outcome.value;
    }
    const { reason, detail, frames } = outcome;
    if (reason === "aborted") signal.throwIfAborted();
    this.#waits.set(slug, reason === "timeout" ? (this.#waits.get(slug) ?? 0) + 1 : 0);
    log.warn({ plugin: slug, method, reason, frames }, `a plugin failed: ${detail}`);
    throw new Unavailable(detail);
  }
}
