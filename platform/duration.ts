const minute = 60_000;
const units = [
  ["day", 24 * 60 * minute],
  ["hour", 60 * minute],
  ["minute", minute],
] as const;

/** The time between two instants for people, in at most two units: `1 day 3 hours`. */
export function durationText(from: Date, to: Date): string {
  let rest = Math.max(0, to.getTime() - from.getTime());
  const largest = units.findIndex(([, length]) => rest >= length);
  if (largest < 0) return "less than a minute";
  const parts: string[] = [];
  for (const [name, length] of units.slice(largest, largest + 2)) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count} ${name}${count === 1 ? "" : "s"}`);
  }
  return parts.join(" ");
}

/** Formats a time to the minute in a time zone, with the zone's name: `2026-12-01 18:00 UTC`. */
export function minuteText(at: Date, timezone: string): string {
  const there = Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO(timezone);
  return `${there.toPlainDate()} ${there.toPlainTime().toString({ smallestUnit: "minute" })} ${timezone}`;
}
