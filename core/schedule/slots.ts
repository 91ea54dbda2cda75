import type { Timing } from "./tasks.ts";

// Slots, as a pure function of the timing, the time zone and an instant. Leap seconds do not exist here, as nowhere in
// POSIX time.

/** The latest slot that is not behind `at`. */
export function previousSlot(timing: Timing, zone: string, at: Date): Date {
  if ("every" in timing) return aligned(timing.every, at);
  let date = localDate(zone, at).add({ days: 1 });
  for (;;) {
    const slot = dailySlot(timing.daily, zone, date);
    if (slot <= at) return slot;
    date = date.subtract({ days: 1 });
  }
}

/** The first slot behind `at`. */
export function nextSlot(timing: Timing, zone: string, at: Date): Date {
  if ("every" in timing) return new Date(aligned(timing.every, at).getTime() + timing.every * 1000);
  let date = localDate(zone, at).subtract({ days: 1 });
  for (;;) {
    const slot = dailySlot(timing.daily, zone, date);
    if (slot > at) return slot;
    date = date.add({ days: 1 });
  }
}

/** How many slots there are behind `from`, up to and with `to`; and the first of them. */
export function slotsBetween(
  timing: Timing,
  zone: string,
  from: Date,
  to: Date,
): { count: number; first: Date | undefined } {
  const first = nextSlot(timing, zone, from);
  if (first > to) return { count: 0, first: undefined };
  if ("every" in timing) {
    const period = timing.every * 1000;
    return { count: Math.floor((to.getTime() - first.getTime()) / period) + 1, first };
  }
  let count = 0;
  for (let slot = first; slot <= to; slot = nextSlot(timing, zone, slot)) count += 1;
  return { count, first };
}

function aligned(every: number, at: Date): Date {
  const period = every * 1000;
  return new Date(Math.floor(at.getTime() / period) * period);
}

function localDate(zone: string, at: Date): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO(zone).toPlainDate();
}

/**
 * The slot of one day. Where the clocks go back and the time comes twice, it is the first; where they go forward and it
 * does not come at all, the first instant behind the gap.
 */
function dailySlot(time: string, zone: string, date: Temporal.PlainDate): Date {
  const wanted = date.toPlainDateTime(Temporal.PlainTime.from(time));
  const found = wanted.toZonedDateTime(zone, { disambiguation: "earlier" });
  // In a gap, `earlier` is as long before it as the time is inside of it.
  const gapEnd = found.toPlainDateTime().equals(wanted) ? undefined : found.getTimeZoneTransition("next");
  return new Date((gapEnd ?? found).epochMilliseconds);
}

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
