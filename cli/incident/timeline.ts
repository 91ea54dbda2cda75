import type { TimelineEvent } from "./incident.ts";
import { shortName } from "./people.ts";

// A timeline for people. What somebody said is shown whole: status reports, notes and messages. What the server did by
// itself, such as the four steps after somebody has joined, is folded into the line of the event before.

/** The kinds of events that have the words of a person. */
export const saidKinds = ["note", "report.written", "message.sent"] as const;

export function isSaid({ kind }: Pick<TimelineEvent, "kind">): boolean {
  return (saidKinds as readonly string[]).includes(kind);
}

/** Whether an edit replaced the description or the resolution, which the event keeps. Admins can redact it. */
export function hasEarlierText({ kind, data }: Pick<TimelineEvent, "kind" | "data">): boolean {
  if (kind !== "incident.updated") return false;
  const { description, resolution } = Object(data) as Record<string, { from?: unknown } | undefined>;
  return [description, resolution].some((change) => Boolean(change?.from));
}

/** What happened to the text of an event, a report or a message. A server of an older release does not say. */
export type EntryState = Partial<
  Pick<TimelineEvent, "version" | "edited_at" | "edited_by" | "withdrawn_at" | "redacted_at">
>;

/** The name by which a note, a report or a message is corrected: `e1042`. */
export function entryName(id: number): string {
  return `e${id}`;
}

/** `(e1042)` or `(e1042, edited by carol, 5m ago)`, after the text; empty for what cannot be corrected. */
export function entryMark(
  id: number | null | undefined,
  state: EntryState,
  when: (instant: string) => string,
): string {
  if (!id || state.version === undefined) return "";
  const { edited_at, withdrawn_at, redacted_at } = state;
  const edited =
    edited_at && !withdrawn_at && !redacted_at ? `, edited ${byWhom(state, edited_at, when)}` : "";
  return `(${entryName(id)}${edited})`;
}

/** The same for an event of the timeline. */
export function markOf({ event, more }: Entry, when: (instant: string) => string): string {
  return (isSaid(event) || hasEarlierText(event)) && more.length === 0
    ? entryMark(event.id, event, when)
    : "";
}

/** What a reader sees instead of a text that was withdrawn or redacted. */
export function removedText(state: EntryState, when: (instant: string) => string): string | undefined {
  if (state.redacted_at) return `Redacted ${byWhom(state, state.redacted_at, when)}`;
  return state.withdrawn_at ? `Withdrawn ${byWhom(state, state.withdrawn_at, when)}` : undefined;
}

function byWhom({ edited_by }: EntryState, at: string, when: (instant: string) => string): string {
  return `by ${shortName(edited_by ?? "")}, ${when(at)}`;
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
  const { kind, data, description } = event;
  if (more.length > 0) {
    const counts = new Map<string, number>();
    for (const one of [event, ...more]) counts.set(one.description, (counts.get(one.description) ?? 0) + 1);
    return [...counts].map(([text, count]) => (count > 1 ? `${text} (${count} times)` : text)).join("; ");
  }
  const corrected = correctionText(event);
  if (corrected !== undefined) return corrected;
  const removed = removedText(event, when);
  if (removed !== undefined) return removed;
  if (kind === "message.sent") {
    const { recipient } = (data ?? {}) as { recipient?: unknown };
    return `says${typeof recipient === "string" ? ` to ${shortName(recipient)}` : ""}: ${description}`;
  }
  const noted = notedAt(event);
  return noted === undefined ? description : `(backdated, written ${when(noted)}) ${description}`;
}

/** What was corrected, and its new wording: it is shown whole where it was said. */
function correctionText({ kind, description, data }: TimelineEvent): string | undefined {
  const { target_id: target } = (data ?? {}) as { target_id?: unknown };
  if (typeof target !== "number") return undefined;
  const name = entryName(target);
  if (kind === "corrected") return `corrected ${name}: ${description.trim().replace(/\s+/g, " ")}`;
  if (kind === "withdrawn") return `withdrew ${name}`;
  return kind === "redacted" ? `redacted ${name}` : undefined;
}

/** When a backdated note was written. */
export function notedAt({ data }: TimelineEvent): string | undefined {
  const { noted_at: noted } = (data ?? {}) as { noted_at?: unknown };
  return typeof noted === "string" && !Number.isNaN(Date.parse(noted)) ? noted : undefined;
}
