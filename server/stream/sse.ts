import type { Event } from "../../core/incident/event/list.ts";
import { viewOf } from "../event/model.ts";

// The text of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html).

const encoder = new TextEncoder();

/** A comment, sent when nothing else was, so that proxies do not cut the connection. */
export const heartbeat = encoder.encode(":\n\n");

/** Tells the client how long to wait before it reconnects, and the id to resume after. */
export function retryAfter(milliseconds: number, cursor?: number): Uint8Array {
  // Without data, this is not an event, but it sets the client's last event id.
  const position = cursor === undefined ? "" : `id: ${cursor}\n`;
  return encoder.encode(`retry: ${milliseconds}\n${position}\n`);
}

/** JSON without the characters that some clients wrongly treat as the end of a line. */
function oneLine(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u0085\u2028\u2029]/g,
    (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** An event of a timeline, exactly as `GET /incidents/{id}/events/` shows it. */
export function encodeEvent(event: Event): string {
  return `id: ${event.id}\nevent: event\ndata: ${oneLine(viewOf(event))}\n\n`;
}

/** Says that an incident has changed. */
export function encodeChange({ id, name }: { id: number; name: string }): string {
  return `event: incident\ndata: ${oneLine({ id, name })}\n\n`;
}

export const encode = (parts: readonly string[]): Uint8Array => encoder.encode(parts.join(""));

export const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  // nginx would otherwise collect events until its buffer is full.
  "x-accel-buffering": "no",
  // Proxies that change or compress a stream would buffer it.
  "cache-control": "no-store, no-transform",
} as const;
