/** Turns without end: from `startsAt` on, each member in turn for `shiftHours`. */
export interface Turns {
  startsAt: Date;
  shiftHours: number;
  /** The number of places. */
  members: number;
}

const hour = 3_600_000;

/**
 * Returns the place, from 0, whose turn it is at `at`. Undefined before the first turn and for an empty rotation. A
 * turn includes its first instant and not its last. Hours are elapsed time: a clock change does not affect a shift.
 */
export function onCall({ startsAt, shiftHours, members }: Turns, at: Date): number | undefined {
  const elapsed = at.getTime() - startsAt.getTime();
  if (elapsed < 0 || members === 0) return undefined;
  return Math.floor(elapsed / (shiftHours * hour)) % members;
}
