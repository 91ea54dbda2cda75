import type { RunResult, runTriggers } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { catchUpSeconds, type Due, dueSlots, nextSlot, previousSlot } from "./slots.ts";
import type { TaskDefinition, Timing } from "./tasks.ts";

/** A run that is claimed and not finished. Its worker may be dead. */
export interface Running {
  slot: Date;
  leaseUntil: Date;
  attempt: number;
  trigger: (typeof runTriggers)[number];
}

/** The part of a task's state at `now` that decides what to do. */
export interface Seen {
  now: Date;
  since: Date;
  pausedAt: Date | null;
  /** The latest slot that was claimed or missed. */
  last: Date | null;
  running: Running | null;
}

/** What to do about a task. Slots after `from` are unclaimed. */
export type Decision =
  | { what: "wait"; lookAgain: Date }
  | { what: "claim expired"; running: Running }
  | ({ what: "claim"; from: Date } & Due);

/** How soon to check again what another worker is about to release. */
const retrySeconds = 1;
/** How soon to check a paused task's run, which is claimed on resumption: before it counts as late. */
const pausedSeconds = 30;

/** Decides what to do about a task, regardless of who read its state and with which locks. */
export function decide({ timing }: TaskDefinition, zone: string, seen: Seen): Decision {
  const { now, since, pausedAt, last, running } = seen;
  const next = nextSlot(timing, zone, now);
  if (pausedAt) return { what: "wait", lookAgain: running ? sooner(next, after(now, pausedSeconds)) : next };
  if (running && running.leaseUntil <= now) return { what: "claim expired", running };
  // Soon, because its worker may be stopped and release it.
  if (running) return { what: "wait", lookAgain: sooner(soonAfter(now, next), running.leaseUntil) };
  const from = last && last > since ? last : since;
  const due = dueSlots(timing, zone, from, now);
  const nothing = !due.slot && due.missed.length === 0;
  return nothing ? { what: "wait", lookAgain: next } : { what: "claim", from, ...due };
}

/** When to check again what another worker is handling: not at once, and no later than the next slot. */
export function soonAfter(now: Date, next: Date): Date {
  return sooner(next, after(now, retrySeconds));
}

function sooner(one: Date, other: Date): Date {
  return one < other ? one : other;
}

/** A slot to claim, and the conditions for that. */
export interface Wanted {
  slot: Date;
  /** When it is too late: there is another slot, or it is no longer made up for. */
  until: Date;
  /** Where the unclaimed slots begin: at the last claimed one, or when the task was first seen. */
  from: { first: Date; last: Date };
  result: RunResult;
}

/** The usual claim at that time: the latest slot, if the one before has run. */
export function usuallyWanted({ timing }: TaskDefinition, zone: string, at: Date): Wanted {
  const slot = previousSlot(timing, zone, at);
  const before = after(slot, -0.001);
  const from = { first: previousSlot(timing, zone, before), last: before };
  return { slot, until: lastChance(timing, zone, slot), from, result: {} };
}

/** Returns what a decision claims. Undefined if there is more to do, or nothing. */
export function wantedOf({ timing }: TaskDefinition, zone: string, decision: Decision): Wanted | undefined {
  if (decision.what !== "claim" || !decision.slot || decision.missed.length > 0) return undefined;
  const { slot, from: first } = decision;
  // PostgreSQL may have stored it in microseconds.
  const from = { first, last: after(first, 0.001) };
  return { slot, until: lastChance(timing, zone, slot), from, result: resultOf(decision) };
}

/** What a run records when it starts: the slots that it covers. */
export function resultOf({ skipped }: Due): RunResult {
  return skipped ? { missed_slots: { count: skipped.count, from: skipped.from.toISOString() } } : {};
}

/** Until when a slot is worth running: the next one is due, or a daily one is no longer made up for. */
export function lastChance(timing: Timing, zone: string, slot: Date): Date {
  const next = nextSlot(timing, zone, slot);
  if ("every" in timing) return next;
  const given = after(slot, catchUpSeconds + 0.001);
  return given < next ? given : next;
}

/** Whether an attempt at `wanted` was also one at `due`. */
export function covers(wanted: Wanted, due: Wanted): boolean {
  const { first, last } = wanted.from;
  return wanted.slot.getTime() === due.slot.getTime() && first <= due.from.first && due.from.last <= last;
}
