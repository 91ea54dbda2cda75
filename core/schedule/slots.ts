import type { Timing } from "./tasks.ts";

// Slots as a pure function of the timing, the time zone and an instant. There are no leap seconds, as in POSIX time.

/** The latest slot at or before `at`. */
export function previousSlot(timing: Timing, zone: string, at: Date): Date {
  if ("every" in timing) return aligned(timing.every, at);
  let date = localDate(zone, at).add({ days: 1 });
  for (;;) {
    const slot = dailySlot(timing.daily, zone, date);
    if (slot <= at) return slot;
    date = date.subtract({ days: 1 });
  }
}

/** The first slot after `at`. */
export function nextSlot(timing: Timing, zone: string, at: Date): Date {
  if ("every" in timing) return new Date(aligned(timing.every, at).getTime() + timing.every * 1000);
  let date = localDate(zone, at).subtract({ days: 1 });
  for (;;) {
    const slot = dailySlot(timing.daily, zone, date);
    if (slot > at) return slot;
    date = date.add({ days: 1 });
  }
}

/** How many slots there are after `from`, up to and including `to`, and the first of them. */
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
 * The slot of one day. If the clocks go back and the time occurs twice, it is the first one. If they go forward and it
 * does not occur, it is the first instant after the gap.
 */
function dailySlot(time: string, zone: string, date: Temporal.PlainDate): Date {
  const wanted = date.toPlainDateTime(Temporal.PlainTime.from(time));
  const found = wanted.toZonedDateTime(zone, { disambiguation: "earlier" });
  // In a gap, `earlier` is as far before the gap as the time is inside it.
  const gapEnd = found.toPlainDateTime().equals(wanted) ? undefined : found.getTimeZoneTransition("next");
  return new Date((gapEnd ?? found).epochMilliseconds);
}

/** How long after its slot a daily task still runs. Older slots are recorded as missed. */
export const catchUpSeconds = 6 * 3600;

/** What to do about the unclaimed slots of a task. */
export interface Due {
  /** The slot to run. Undefined if there is none yet. */
  slot?: Date;
  /** Earlier slots that were not run, and the first of them. They are not made up for. */
  skipped?: { count: number; from: Date };
  /** Daily slots that are too old to run. */
  missed: Date[];
}

/**
 * For a periodic task, the latest slot runs and covers those before it. For a daily task, each slot counts: it runs if
 * it is not older than six hours.
 *
 * `last` is the latest slot that was claimed or missed, or the time before which nothing should run.
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
