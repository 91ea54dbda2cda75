import { catchUpSeconds } from "./slots.ts";
import type { RunView, SeenFault, TaskStatus } from "./status.ts";
import { findTask, periodText } from "./tasks.ts";

/** Explains line by line what is due for a task and why. */
export function explain(
  status: TaskStatus,
  { now, faults, timezone }: { now: Date; faults: readonly SeenFault[]; timezone: string },
  text: (at: Date | null) => string,
): string[] {
  const { timing } = findTask(status.name)!;
  const rule =
    "daily" in timing
      ? `Every day at ${timing.daily} in ${timezone}; a missed slot is made up for within ${catchUpSeconds / 3600} h`
      : `Every ${periodText(timing)} since the epoch; of missed slots, only the latest runs`;
  const { last, lastEnded } = status;
  const isOfLast = ({ slot }: SeenFault) => slot.getTime() === lastEnded?.getTime();
  const [ofLast, earlier] = [faults.filter(isOfLast), faults.filter((fault) => !isOfLast(fault))];
  const isAhead = last !== null && last.slot > now;
  return [
    `${status.name} at ${text(now)}`,
    rule,
    state(status, text),
    ...(last ? lastRun(last, text) : ["It has not run yet"]),
    ...status.failingPlugins.map(
      ({ plugin, items, since }) =>
        `The plugin ${plugin} has failed since ${text(since)}, in the last run for all of its ${items} items`,
    ),
    ...(ofLast.length > 0 && last?.slot.getTime() !== lastEnded?.getTime()
      ? [`Faults of the last finished run, at ${text(lastEnded)}:`]
      : []),
    ...ofLast.map(({ item, reason }) => `  ${item}: ${reason}`),
    ...(earlier.length > 0 ? ["Faults of other items in the 24 h before it:"] : []),
    ...earlier.map(({ slot, item, reason }) => `  ${text(slot)} ${item}: ${reason}`),
    ...(status.next ? [`Next slot: ${text(status.next)}`] : []),
    ...(isAhead
      ? [
          "Slots up to then ran while the database's clock was ahead: to run them again, use svc scheduler rewind",
        ]
      : []),
  ];
}

function state({ state, due, last, pausedAt }: TaskStatus, text: (at: Date | null) => string): string {
  switch (state) {
    case "unknown":
      return "No worker has seen it yet: its slots count once one has";
    case "paused":
      return `Paused since ${text(pausedAt)}: no slot is claimed until svc scheduler resume`;
    case "running":
      return last && last.result.retries?.attempt === last.attempt
        ? `Postponed: any worker retries it at ${text(last.leaseUntil)}`
        : `Running: its worker's lease ends at ${text(last?.leaseUntil ?? null)} unless it is renewed`;
    case "waiting":
      return due ? `Due since ${text(due)}, and no worker has claimed it` : "Nothing is due";
  }
}

function lastRun(last: RunView, text: (at: Date | null) => string): string[] {
  const { slot, state, trigger, attempt, result, error, startedAt, finishedAt } = last;
  const how = trigger === "eager" ? ", by hand" : "";
  const again = attempt > 1 ? `, attempt ${attempt}` : "";
  const took =
    startedAt && finishedAt ? `, ${((finishedAt.getTime() - startedAt.getTime()) / 1000).toFixed(1)} s` : "";
  const { done, skipped, failed, missed_slots: missed, retries } = result;
  return [
    `Last slot: ${text(slot)}, ${state}${how}${again}${took}`,
    ...(done === undefined ? [] : [`  ${done} done, ${skipped} skipped, ${failed} failed`]),
    ...(error ? [`  ${error}`] : []),
    ...(retries ? [`  Postponed attempts: ${retries.count}; last reason: ${retries.reason}`] : []),
    ...(missed ? [`  Missed slots before it: ${missed.count}, from ${text(new Date(missed.from))}`] : []),
  ];
}
