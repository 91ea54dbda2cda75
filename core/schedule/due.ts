import { nextSlot, previousSlot, slotsBetween } from "./slot.ts";
import type { Timing } from "./tasks.ts";

/** How long after its slot a daily task is still run; what is older is recorded as missed. */
export const catchUpSeconds = 6 * 3600;

/** What is to be done about the slots of a task that nobody has claimed. */
export interface Due {
  /** The slot to be run; undefined when there is none for now. */
  slot?: Date;
  /** Slots before it that nobody ran, and the first of them: those are not made up for. */
  skipped?: { count: number; from: Date };
  /** Daily slots that are too old to be run. */
  missed: Date[];
}

/**
 * Of a task that is due every so often, the latest slot runs and stands for those before it. Of a daily one, each slot
 * counts for itself: it runs if it is not older than six hours.
 *
 * `last` is the latest slot that was claimed or missed, or the time before which nothing is to be run.
 */
export function dueSlots(timing: Timing, zone: string, last: Date, now: Date): Due {
  const slot = previousSlot(timing, zone, now);
  if (slot <= last) return { missed: [] };
  if ("every" in timing) {
    const { count, first } = slotsBetween(timing, zone, last, slot);
    return count > 1
      ? { slot, skipped: { count: count - 1, from: first! }, missed: [] }
      : { slot, missed: [] };
  }
  const oldest = now.getTime() - catchUpSeconds * 1000;
  const missed: Date[] = [];
  for (let one = nextSlot(timing, zone, last); one <= slot; one = nextSlot(timing, zone, one)) {
    if (one.getTime() >= oldest) return { slot: one, missed };
    missed.push(one);
  }
  return { missed };
}
