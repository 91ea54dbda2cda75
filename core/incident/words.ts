import { durationText } from "../../platform/duration.ts";
import type { ApiView } from "../../platform/names.ts";
import { printable } from "../../platform/text.ts";
import type { Event } from "./event/list.ts";
import { type Folded, foldedText, isSaid } from "./timeline/fold.ts";

// How an incident and what happened in it is told to people: in the terminal, and in files. Of the API's answers.

/** An event of the timeline. The names in `data` are those that were recorded. */
export type TimelineEvent = Omit<ApiView<Event>, "incident_id" | "data"> & { data: Record<string, unknown> };

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

export type Entry<Event extends TimelineEvent = TimelineEvent> = Folded<Event>;

/** The text of an entry, without the time and the actor. `when` shows when a backdated note was written. */
export function entryText({ event, more }: Entry, when: (instant: string) => string): string {
  const { kind, data, description } = event;
  if (more.length > 0) {
    return foldedText({ event, more });
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

/** The part of an address before the @, which is enough for people who know each other. */
export function shortName(email: string): string {
  return printable(email.split("@")[0]!, 80);
}

/** When the harm began and ended, and how long it lasted; undefined if neither is known. */
export function impactText(
  {
    impact_started_at: start,
    impact_ended_at: end,
  }: { impact_started_at: string | null; impact_ended_at: string | null },
  when: (instant: string) => string,
): string | undefined {
  if (start && end)
    return `from ${when(start)} to ${when(end)} (${durationText(new Date(start), new Date(end))})`;
  if (start) return `since ${when(start)}`;
  return end ? `until ${when(end)}` : undefined;
}

/** Who may read an incident. The values of the API look like those of its status. */
export function visibilityText(visibility: string): string {
  if (visibility === "Open") return "Visible to everyone";
  return visibility === "Restricted" ? "Restricted to its participants" : visibility;
}
