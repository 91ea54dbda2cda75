import { after } from "../../platform/clock.ts";
import type { RunResult } from "../../drizzle/schema/index.ts";
import type { Decision } from "./decide.ts";
import { catchUpSeconds, type Due } from "./due.ts";
import { nextSlot, previousSlot } from "./slot.ts";
import type { TaskDefinition, Timing } from "./tasks.ts";

/** A slot that is to be claimed, and what has to be true for that. */
export interface Wanted {
  slot: Date;
  /** From then on it is too late: there is another slot, or it is not made up for any more. */
  until: Date;
  /** Where the slots begin that are nobody's yet: the last one that is somebody's, or when the task was first seen. */
  from: { first: Date; last: Date };
  result: RunResult;
}

/** What there mostly is to be claimed at that time: the latest slot, where the one before has been run. */
export function usuallyWanted({ timing }: TaskDefinition, zone: string, at: Date): Wanted {
  const slot = previousSlot(timing, zone, at);
  const before = after(slot, -0.001);
  const from = { first: previousSlot(timing, zone, before), last: before };
  return { slot, until: lastChance(timing, zone, slot), from, result: {} };
}

/** What is to be claimed by a decision; undefined where there is more to do, or nothing. */
export function wantedOf({ timing }: TaskDefinition, zone: string, decision: Decision): Wanted | undefined {
  if (decision.what !== "claim" || !decision.slot || decision.missed.length > 0) return undefined;
  const { slot, from: first } = decision;
  // PostgreSQL may have microseconds of it.
  const from = { first, last: after(first, 0.001) };
  return { slot, until: lastChance(timing, zone, slot), from, result: resultOf(decision) };
}

/** What a run has recorded from its beginning: the slots that it stands for. */
export function resultOf({ skipped }: Due): RunResult {
  return skipped ? { missed_slots: { count: skipped.count, from: skipped.from.toISOString() } } : {};
}

/** Until when a slot is worth being run: the next one is due, or a daily one is not made up for any more. */
export function lastChance(timing: Timing, zone: string, slot: Date): Date {
  const next = nextSlot(timing, zone, slot);
  if ("every" in timing) return next;
  const given = after(slot, catchUpSeconds + 0.001);
  return given < next ? given : next;
}

/** Whether an attempt at `wanted` was one at `due`, too. */
export function covers(wanted: Wanted, due: Wanted): boolean {
  const { first, last } = wanted.from;
  return wanted.slot.getTime() === due.slot.getTime() && first <= due.from.first && due.from.last <= last;
}
