/** Turns that follow one another without end: from `startsAt` on each member in turn for `shiftHours`. */
export interface Turns {
  startsAt: Date;
  shiftHours: number;
  /** How many places there are. */
  members: number;
}

const hour = 3_600_000;

/**
 * The place, from 0, whose turn it is at `at`; undefined before the first turn and when nobody is in it. A turn holds
 * its first instant and not its last. Hours are of elapsed time: a clock that is put forward shortens no shift.
 */
export function onCall({ startsAt, shiftHours, members }: Turns, at: Date): number | undefined {
  const elapsed = at.getTime() - startsAt.getTime();
  if (elapsed < 0 || members === 0) return undefined;
  return Math.floor(elapsed / (shiftHours * hour)) % members;
}
