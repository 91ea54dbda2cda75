import { type ActivePlugin, callPlugin } from "../core/plugin/call.ts";
import { masked } from "../core/plugin/mask.ts";
import type { MethodAnswer, MethodInput, MethodName, PluginType } from "../core/plugin/methods.ts";
import type { TaskResult } from "../core/schedule/runs.ts";
import { type Followed, keepRecords } from "../core/sync/keep.ts";
import { readItems } from "../core/sync/read.ts";
import { Unavailable } from "../platform/errors.ts";
import { lockedReason, type TaskContext, workOnItem } from "./task.ts";

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

/** A plugin that lists records. `list` throws Unavailable. */
interface Source {
  slug: string;
  /** Of its configuration: nothing that is kept may hold them. */
  secrets: readonly string[];
  list(): Promise<unknown[]>;
}

/**
 * Makes our records those of their sources, each source in a transaction of its own. One that fails, or that lists
 * nothing, is a fault: its records stay what they are, and the others go on. So do records of a source that is no longer
 * in use.
 *
 * @throws Unavailable when all sources fail
 */
export async function followSources<I extends { externalId: string }, F extends object>(
  context: TaskContext,
  sources: readonly Source[],
  followed: Followed<I, F>,
): Promise<TaskResult> {
  const { clock, fault, postpone, transaction } = context;
  const follow = async ({ slug, secrets, list }: Source) => {
    const reading = readItems({ slug, secrets }, await list(), followed);
    for (const { item, reason } of reading.faults) fault(item, reason);
    if (reading.records.length === 0)
      throw new Unavailable(`${slug} lists nothing that could be kept: nothing was changed`);
    const kept = await transaction((tx) =>
      keepRecords(tx, followed, { source: slug, reading, at: clock.now() }),
    );
    for (const id of kept.refused) fault(`${slug} ${masked(id)}`, "PostgreSQL refuses to keep it");
    for (const id of kept.locked) postpone(`${slug} ${masked(id)}`, lockedReason);
    return { ...kept, failed: reading.faults.length + kept.refused.length + kept.locked.length };
  };
  // At once, so that none waits for one that hangs.
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
