import { type ActivePlugin, callPlugin } from "../core/plugin/call.ts";
import { masked } from "../core/plugin/mask.ts";
import type { MethodAnswer, MethodInput, MethodName, PluginType } from "../core/plugin/methods.ts";
import type { TaskResult } from "../core/schedule/runs.ts";
import { type Followed, keepRecords } from "../core/sync/keep.ts";
import { readItems } from "../core/sync/read.ts";
import { Unavailable } from "../platform/errors.ts";
import { lockedReason, type TaskContext, workOnItem } from "./task.ts";

/** A run stops asking a plugin after this many timeouts in a row. */
const patience = 3;

/**
 * Calls plugins on behalf of a run. It stops calling a plugin after several timeouts in a row, so that a plugin that
 * hangs delays a run by a few timeouts, not by one per item.
 */
export class Asking {
  readonly #waits = new Map<string, number>();

  constructor(private readonly context: Pick<TaskContext, "log" | "signal" | "plugins" | "called">) {}

  /** @throws Unavailable when this plugin is not among the chosen ones, which counts as its failure */
  chosen<T extends PluginType>(type: T, slug: string): ActivePlugin<T> {
    const plugin = this.context.plugins.find(type, slug);
    if (plugin) return plugin;
    this.context.called(slug, false);
    throw new Unavailable(`Its plugin ${slug} is no longer chosen: SVC_PLUGIN_${type.toUpperCase()}`);
  }

  /** @throws Unavailable when the plugin fails, with a message for users */
  async ask<T extends PluginType, M extends MethodName<T>>(
    plugin: ActivePlugin<T>,
    method: M,
    input: MethodInput<T, M>,
  ): Promise<MethodAnswer<T, M>> {
    const { log, signal, called } = this.context;
    const { slug } = plugin;
    if ((this.#waits.get(slug) ?? 0) >= patience) {
      called(slug, false);
      throw new Unavailable(`${slug} was not called again: it timed out ${patience} times in a row`);
    }
    const outcome = await callPlugin(plugin, method, input, { signal });
    if (outcome.ok) {
      this.#waits.set(slug, 0);
      called(slug, true);
      return outcome.value;
    }
    const { reason, detail, frames } = outcome;
    if (reason === "aborted") signal.throwIfAborted();
    called(slug, false);
    this.#waits.set(slug, reason === "timeout" ? (this.#waits.get(slug) ?? 0) + 1 : 0);
    log.warn({ plugin: slug, method, reason, frames }, `a plugin failed: ${detail}`);
    throw new Unavailable(detail);
  }
}

/**
 * Syncs our records with their sources, one transaction per source. A source that fails or lists nothing is recorded as
 * a fault: its records stay unchanged, and the other sources continue. Records of a source that is no longer configured
 * stay unchanged, too.
 *
 * @throws Unavailable when all sources fail
 */
export async function followSources<I extends { externalId: string }, F extends object>(
  context: TaskContext,
  sources: readonly ActivePlugin<"term" | "application">[],
  followed: Followed<I, F>,
): Promise<TaskResult> {
  const { clock, fault, postpone, transaction } = context;
  const asking = new Asking(context);
  const follow = async (source: ActivePlugin<"term" | "application">) => {
    const { slug } = source;
    const reading = readItems(source, await asking.ask(source, "list", {}), followed);
    for (const { item, reason } of reading.faults) fault(item, reason);
    if (reading.records.length === 0)
      throw new Unavailable(`${slug} lists no valid items: nothing was changed`);
    const kept = await transaction((tx) =>
      keepRecords(tx, followed, { source: slug, reading, at: clock.now() }),
    );
    for (const id of kept.refused) fault(`${slug} ${masked(id)}`, "PostgreSQL rejects it");
    for (const id of kept.locked) postpone(`${slug} ${masked(id)}`, lockedReason);
    return { ...kept, failed: reading.faults.length + kept.refused.length + kept.locked.length };
  };
  // In parallel, so that a source that hangs does not delay the others.
  const ends = await Promise.all(
    sources.map((source) => workOnItem(context, source.slug, () => follow(source))),
  );
  const failures = ends.flatMap((end) => ("failure" in end ? [end.failure] : []));
  if (failures.length > 0 && failures.length === sources.length) throw new Unavailable(failures.join("; "));
  const result = { done: 0, skipped: 0, failed: failures.length };
  for (const end of ends) {
    if ("failure" in end) continue;
    result.done += end.value.done;
    result.skipped += end.value.skipped;
    result.failed += end.value.failed;
  }
  return result;
}
