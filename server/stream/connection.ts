import type { Actor } from "../../core/context.ts";
import type { Event } from "../../core/incident/event/list.ts";
import { viewOf } from "../event/model.ts";

/** In bytes. A client with this much unread is disconnected, and resumes when it reconnects. */
export const longestBacklog = 64 * 1024;
/** How long a client may read nothing while it catches up. */
const patienceMilliseconds = 5000;

/** Why a stream ended, as in docs/observability.md. */
export type EndReason = "left" | "signed_out" | "no_access" | "deleted" | "slow" | "stopping" | "failed";

/**
 * One client of a stream, with a bounded backlog however slowly it reads.
 *
 * Elysia calls `cancel` of a ReadableStream when the client disconnects. It never ends a suspended `async function*`.
 */
export class Connection {
  readonly body: ReadableStream<Uint8Array>;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #ended = false;
  #hasRoom = Promise.withResolvers<void>();
  /** When something was last sent to it, by performance.now(). */
  lastSent = performance.now();

  constructor(
    public actor: Actor,
    /** Called once, however it ends. */
    private readonly onEnd: (reason: EndReason) => void,
  ) {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#hasRoom.resolve(),
        cancel: () => {
          if (!this.#ended) this.#end("left");
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: longestBacklog }),
    );
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Whether its backlog is full. */
  get isBehind(): boolean {
    return (this.#controller.desiredSize ?? 0) <= 0;
  }

  /** Sends bytes, or disconnects a client whose backlog is full. */
  send(bytes: Uint8Array): void {
    if (this.#ended) return;
    if (this.isBehind) {
      this.abort();
      return;
    }
    this.lastSent = performance.now();
    this.#controller.enqueue(bytes);
  }

  /** Resolves when there is room for more, or the connection has ended, as it does for a client that reads nothing. */
  async room(): Promise<void> {
    if (this.#ended || !this.isBehind) return;
    const timer = setTimeout(() => this.abort(), patienceMilliseconds);
    while (!this.#ended && this.isBehind) {
      this.#hasRoom = Promise.withResolvers();
      await this.#hasRoom.promise;
    }
    clearTimeout(timer);
  }

  /** Ends the stream after the backlog. */
  close(reason: EndReason, lastBytes?: Uint8Array): void {
    if (this.#ended) return;
    if (lastBytes) this.#controller.enqueue(lastBytes);
    this.#end(reason);
    this.#controller.close();
  }

  /** Ends the connection at once, without the backlog. */
  abort(): void {
    if (this.#ended) return;
    this.#end("slow");
    this.#controller.error(new Error("the client reads too slowly"));
  }

  #end(reason: EndReason): void {
    this.#ended = true;
    this.#hasRoom.resolve();
    this.onEnd(reason);
  }
}

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
