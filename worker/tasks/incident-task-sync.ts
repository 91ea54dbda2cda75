import pLimit from "p-limit";
import { documentFacts } from "../../core/incident/incident/facts.ts";
import { deliver } from "../../core/outbox/deliver.ts";
import { masked } from "../../core/plugin/mask.ts";
import type { TaskResult } from "../../core/schedule/runs.ts";
import { nextSlot } from "../../core/schedule/slots.ts";
import { findTask } from "../../core/schedule/tasks.ts";
import {
  keepTasks,
  type PluginFilter,
  pageOfTaskPlaces,
  type TaskPlace,
} from "../../core/sync/document_tasks.ts";
import { readTasks } from "../../core/sync/task_changes.ts";
import { outgoingOf } from "../../core/sync/task_notice.ts";
import { transience } from "../../drizzle/database_error.ts";
import { Unavailable } from "../../platform/errors.ts";
import { Asking } from "../ask.ts";
import { lockedReason, type ScheduledTask, type TaskContext, workOnItem } from "../task.ts";
import { pause } from "../time.ts";

const page = 500;
/** Concurrent calls per plugin. */
const concurrency = 4;
/** Answers read per document and run. If there are more, the next run continues. */
const mostAnswers = 100;

const nameOf = ({ id }: TaskPlace) => `document ${id}`;

const { timing } = findTask("incident-task-sync")!;

/**
 * Syncs the changed tasks in documents of Active and Stable incidents, and in all post-mortems in our database. Plugins are called in parallel. While one plugin
 * delays the run, documents of the others are checked again at every slot.
 */
export const incidentTaskSync: ScheduledTask = {
  async run(context) {
    const { plugins, signal } = context;
    const asking = new Asking(context);
    const slugs = plugins.ofType("document").map(({ slug }) => slug);
    const filters: PluginFilter[] = [...slugs.map((slug) => ({ slug })), { noneOf: slugs }];
    const total = { done: 0, skipped: 0, failed: 0 };
    const all = new AbortController();
    const over = AbortSignal.any([signal, all.signal]);
    let left = filters.length;
    await Promise.all(
      filters.map(async (filter) => {
        try {
          const { done, skipped, failed } = await syncDocuments(context, asking, filter);
          total.done += done;
          total.skipped += skipped;
          total.failed += failed;
        } finally {
          left -= 1;
          if (left === 0) all.abort();
        }
        for (;;) {
          await pause(millisecondsToNextSlot(context), over);
          if (over.aborted) break;
          const { done } = await syncDocuments(context, asking, filter);
          total.done += done;
        }
      }),
    );
    signal.throwIfAborted();
    return total;
  },
};

function millisecondsToNextSlot({ clock, config }: TaskContext): number {
  const now = clock.now();
  return nextSlot(timing, config.timezone, now).getTime() - now.getTime();
}

async function syncDocuments(
  context: TaskContext,
  asking: Asking,
  filter: PluginFilter,
): Promise<TaskResult> {
  const { db } = context;
  const result = { done: 0, skipped: 0, failed: 0 };
  /** Locked incidents: their other documents would wait just as long and delay other incidents. */
  const locked = new Set<number>();
  let last = 0;
  for (;;) {
    const places = await pageOfTaskPlaces(db, filter, last, page);
    await pLimit(concurrency).map(places, async (place) => {
      if (locked.has(place.incidentId)) {
        context.postpone(nameOf(place), lockedReason);
        result.failed += 1;
        return;
      }
      const work = () =>
        syncDocument(context, asking, place).catch((error: unknown) => {
          if (transience(error) === "contention") locked.add(place.incidentId);
          throw error;
        });
      const ended = await workOnItem(context, nameOf(place), work);
      if ("failure" in ended) result.failed += 1;
      else {
        result.failed += ended.value.bad;
        result[ended.value.changed ? "done" : "skipped"] += 1;
      }
    });
    if (places.length < page) return result;
    last = places.at(-1)!.id;
  }
}

/**
 * Reads changes since the last sync until there are no more. A task that cannot be understood is reported once, and
 * read again when it changes: repeating the whole answer would undo what users did to the other tasks meanwhile.
 *
 * @throws Unavailable
 */
async function syncDocument(
  context: TaskContext,
  asking: Asking,
  place: TaskPlace,
): Promise<{ changed: boolean; bad: number }> {
  const { clock, config, transaction } = context;
  const document = documentFacts(place);
  let [changed, bad, cursor] = [false, 0, place.taskCursor];
  const plugin = asking.chosen("document", place.pluginSlug);
  if (!document) return { changed, bad };
  for (let answers = 0; answers < mostAnswers; answers += 1) {
    const since = cursor === null ? {} : { cursor };
    const answer = await asking.ask(plugin, "tasks", { document, ...since });
    const found = readTasks(answer.tasks, config, (externalId, reason) => {
      bad += 1;
      context.fault(`${nameOf(place)}, task ${masked(externalId)}`, reason);
    });
    if (found.length > 0 || answer.cursor !== cursor) {
      const kept = await transaction(async (tx) => {
        const kept = await keepTasks(
          tx,
          { ...place, taskCursor: cursor },
          { found, cursor: answer.cursor, clock },
        );
        const { publicUrl, timezone } = config;
        const about = { incidentId: place.incidentId, document: place, publicUrl, timezone };
        if (kept && kept.notices.length > 0) {
          const { incident, notices } = kept;
          await deliver(
            tx,
            context,
            notices.map((notice) => outgoingOf(notice, { ...about, incident })),
          );
        }
        return kept;
      });
      if (!kept) return { changed, bad };
      changed ||= kept.notices.length > 0 || answer.cursor !== cursor;
    }
    if (answer.complete) return { changed, bad };
    if (answer.cursor === cursor)
      throw new Unavailable(`${plugin.slug} says that there is more, but returns no new cursor`);
    cursor = answer.cursor;
  }
  return { changed, bad };
}
