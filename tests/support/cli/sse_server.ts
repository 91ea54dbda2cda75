/** A server of streams that a test controls: what it sends, when it ends, and which error it returns instead. */
export class SseServer {
  /** The path and `Last-Event-ID` of each request for a stream. */
  readonly streams: { path: string; after: string | null }[] = [];
  /** Responses that replace a stream, by path, or under "stream" for all streams. Undefined returns the stream. */
  readonly answers = new Map<string, (request: Request) => Response | Promise<Response> | undefined>();
  #server: Bun.Server<undefined>;
  readonly #port: number;
  #open = new Map<ReadableStreamDefaultController<Uint8Array>, string>();
  #watchers: (() => void)[] = [];

  constructor(port = 0) {
    this.#server = this.#serve(port);
    this.#port = this.#server.port!;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Sends to every open stream, or to those with a path. */
  send(text: string, path?: string): void {
    for (const [controller, at] of this.#open)
      if (path === undefined || path === at) controller.enqueue(new TextEncoder().encode(text));
  }

  event(event: Record<string, unknown>): void {
    this.send(messageOf(event));
  }

  /** Ends every open stream, like a draining server. */
  end(): void {
    for (const controller of this.#open.keys()) controller.close();
    this.#open.clear();
  }

  /** Closes all connections, and accepts none until `restart`. */
  async kill(): Promise<void> {
    await this.#server.stop(true);
    this.#open.clear();
  }

  restart(): void {
    this.#server = this.#serve(this.#port);
  }

  /** Resolves when this many streams have been requested. */
  async requested(count: number): Promise<void> {
    while (this.streams.length < count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#watchers.push(resolve);
      await promise;
    }
  }

  stop(): Promise<void> {
    return this.#server.stop(true);
  }

  /** The beginning of a new stream. */
  protected first(_path: string, _after: string | null): string {
    return ": connected\n\n";
  }

  #serve(port: number) {
    return Bun.serve({
      hostname: "127.0.0.1",
      port,
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    });
  }

  #answer(request: Request): Response | Promise<Response> {
    const { pathname } = new URL(request.url);
    if (!pathname.endsWith("/stream"))
      return (
        this.answers.get(pathname)?.(request) ??
        Response.json({ code: "not_found", detail: "" }, { status: 404 })
      );
    const after = request.headers.get("last-event-id");
    this.streams.push({ path: pathname, after });
    const instead = this.answers.get("stream");
    let own: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        this.#open.set(controller, pathname);
        controller.enqueue(new TextEncoder().encode(this.first(pathname, after)));
      },
      cancel: () => void this.#open.delete(own),
    });
    const notify = () => {
      for (const watch of this.#watchers.splice(0)) watch();
    };
    queueMicrotask(notify);
    return instead?.(request) ?? new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}

export const messageOf = (event: Record<string, unknown>): string =>
  `id: ${event.id}\nevent: event\ndata: ${JSON.stringify(event)}\n\n`;
