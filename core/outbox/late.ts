import { after } from "../../platform/clock.ts";
import { minuteText } from "../../platform/duration.ts";
import type { Message } from "../plugin/facts.ts";

/** A delay that a reader would notice. */
const lateSeconds = 120;

export function isLate(occurredAt: Date, now: Date): boolean {
  return occurredAt < after(now, -lateSeconds);
}

/** Names the time of what a message reports if it is sent so late that its reader would take it for another one. */
export function namingTime(
  { subject, text }: Message,
  { occurredAt, now, timezone }: { occurredAt: Date; now: Date; timezone: string },
): Message {
  if (!isLate(occurredAt, now)) return { subject, text };
  return { subject, text: `**Time:** ${minuteText(occurredAt, timezone)}\n\n${text}` };
}
