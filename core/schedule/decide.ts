import { after } from "../../platform/clock.ts";
import { type Due, dueSlots } from "./due.ts";
import type { Running, Seen } from "./seen.ts";
import { nextSlot, previousSlot } from "./slot.ts";
import type { TaskDefinition } from "./tasks.ts";

/** What there is to do about a task. Slots behind `from` are nobody's yet. */
export type Decision =
  | { what: "wait"; lookAgain: Date }
  | { what: "take over"; running: Running }
  | ({ what: "claim"; from: Date } & Due);

/** How soon to look again at what somebody else is just about to let go. */
const retrySeconds = 1;
/** And at a run that is to be taken over if the task is resumed: before it counts as late. */
const pausedSeconds = 30;

/** Judges what was seen of a task, whoever has read it, and whatever was locked for that. */
export function decide({ timing }: TaskDefinition, zone: string, seen: Seen): Decision {
  const { now, since, pausedAt, last, running } = seen;
  const next = nextSlot(timing, zone, now);
  if (pausedAt) return { what: "wait", lookAgain: running ? sooner(next, after(now, pausedSeconds)) : next };
  if (running && running.leaseUntil <= now) return { what: "take over", running };
  if (running) {
    const isLatest = running.trigger === "schedule" && running.slot >= previousSlot(timing, zone, now);
    const soon = isLatest ? next : soonBehind(now, next);
    return { what: "wait", lookAgain: sooner(soon, running.leaseUntil) };
  }
  const from = last && last > since ? last : since;
  const due = dueSlots(timing, zone, from, now);
  const nothing = !due.slot && due.missed.length === 0;
  return nothing ? { what: "wait", lookAgain: next } : { what: "claim", from, ...due };
}

/** When to look again at what somebody else has in hand: not at once, and not behind the next slot. */
export function soonBehind(now: Date, next: Date): Date {
  return sooner(next, after(now, retrySeconds));
}

function sooner(one: Date, other: Date): Date {
  return one < other ? one : other;
}
