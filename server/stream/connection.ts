import type { Actor } from "../../core/context.ts";

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
