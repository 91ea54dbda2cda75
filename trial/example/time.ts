const hour = 3_600_000;

/** In whole seconds, as people remember it. */
export function hoursAfter(date: Date, hours: number): Date {
  return new Date(date.getTime() + Math.round((hours * hour) / 1000) * 1000);
}

export function hoursBefore(date: Date, hours: number): Date {
  return hoursAfter(date, -hours);
}

export function hoursBetween(from: Date, to: Date): number {
  return (to.getTime() - from.getTime()) / hour;
}

/** The day in UTC: 2026-12-01. */
export function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10);
}
