import type { TimelineEvent } from "./incident.ts";
import { shortName } from "./people.ts";

// A timeline for people. What somebody said is shown whole: status reports, notes and messages. What the server did by
// itself, such as the four steps after somebody has joined, is folded into the line of the event before.

/** The kinds of events that have the words of a person. */
export const saidKinds = ["note", "report.written", "message.sent"] as const;

export function isSaid({ kind }: Pick<TimelineEvent, "kind">): boolean {
  return (saidKinds as readonly string[]).includes(kind);
}

/** An event, and what followed from it. */
export interface Entry<Event extends TimelineEvent = TimelineEvent> {
  event: Event;
  more: Event[];
  /** The server did all of it by itself. */
  isMachinery?: boolean;
}

/** Whether the server did this by itself. `before` is the event before it. */
function isMachinery(event: TimelineEvent, before?: TimelineEvent): boolean {
  // Somebody must see these.
  if (/^(step\.failed|reminder\.sent|access\..*)$/.test(event.kind) || isSaid(event)) return false;
  if (event.actor === "system" || event.actor === "worker") return true;
  // Who joins gets a role.
  return (
    event.kind === "role.assumed" &&
    before?.kind === "participant.joined" &&
    event.data?.participant_id === before.data?.participant_id
  );
}

/** Folds events of one incident, or of several with their names. `before` is the event before the first one. */
export function folded<Event extends TimelineEvent & { incident?: string }>(
  events: readonly Event[],
  before?: Event,
): Entry<Event>[] {
  const entries: Entry<Event>[] = [];
  let previous = before;
  for (const event of events) {
    const last = entries.at(-1);
    const isByServer = isMachinery(event, previous);
    previous = event;
    if (isByServer && last && !isSaid(last.event) && last.event.incident === event.incident)
      last.more.push(event);
    else entries.push({ event, more: [], isMachinery: isByServer });
  }
  return entries;
}

/** The text of an entry, without the time and the actor. `when` shows when a backdated note was written. */
export function entryText({ event, more }: Entry, when: (instant: string) => string): string {
  const { kind, description, data } = event;
  if (more.length > 0) {
    const counts = new Map<string, number>();
    for (const one of [event, ...more]) counts.set(one.description, (counts.get(one.description) ?? 0) + 1);
    return [...counts].map(([text, count]) => (count > 1 ? `${text} (${count} times)` : text)).join("; ");
  }
  if (kind === "message.sent") {
    const { recipient } = (data ?? {}) as { recipient?: unknown };
    return `says${typeof recipient === "string" ? ` to ${shortName(recipient)}` : ""}: ${description}`;
  }
  const noted = notedAt(event);
  return noted === undefined ? description : `(backdated, written ${when(noted)}) ${description}`;
}

/** When a backdated note was written. */
export function notedAt({ data }: TimelineEvent): string | undefined {
  const { noted_at: noted } = (data ?? {}) as { noted_at?: unknown };
  return typeof noted === "string" && !Number.isNaN(Date.parse(noted)) ? noted : undefined;
}
