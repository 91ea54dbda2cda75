/**
 * Which reminder is due: the k-th, k · N hours behind the anchor; 0 before the first. Those between the last that was
 * sent and this one are not made up for.
 */
export function dueReminder(anchor: Date, hours: number, now: Date): number {
  return Math.max(0, Math.floor((now.getTime() - anchor.getTime()) / (hours * 3_600_000)));
}
