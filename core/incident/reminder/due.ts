/** The last reminder that was sent since the last report, or without one, since the incident was reported. */
export interface Reminded {
  k: number;
  at: Date;
}

/**
 * Which reminder is due: the k-th, k · N hours behind the anchor; 0 for none. Those between the last that was sent and
 * this one are not made up for. Where the N hours have become others since the last, its time tells and not its number:
 * what it stood for is not due once more, and what comes next counts on from it, since no number is used twice.
 */
export function dueReminder(anchor: Date, hours: number, now: Date, last?: Reminded): number {
  const period = hours * 3_600_000;
  const k = Math.max(0, Math.floor((now.getTime() - anchor.getTime()) / period));
  if (!last) return k;
  return anchor.getTime() + k * period > last.at.getTime() ? Math.max(k, last.k + 1) : 0;
}
