import type { Server, SocketAddress } from "bun";

export interface GateOptions {
  /** Taken away from the beginning of each path that has it. */
  rootPath?: string;
  /** Set on each answer. */
  headers: readonly (readonly [string, string])[];
  limitConcurrency?: number;
  limitMaxRequests?: number;
  /** Told of what the application never hears of. */
  refused?: (request: Request, answer: Response) => void;
}

type Answer = Response | Promise<Response>;

/** What Bun reads of a body in chunks that the application leaves alone. */
const drainedBytes = 1024 * 1024;

/** Also if they are equal: a proxy may go by another one of them (RFC 9112, 6.3). */
function twoLengths(): Response {
  return new Response(null, { status: 400, headers: { connection: "close" } });
}

/**
 * For a request in chunks. Bun takes what follows the last chunk (a trailer, or the rest of a broken body) for another
 * request and answers that with 400, which a proxy would hand to somebody else. So the body is read first, whatever
 * follows it in the same packet is looked at, and the answer ends the connection.
 */
function lastOne(application: (request: Request) => Answer): (request: Request) => Promise<Response> {
  return async (request) => {
    const response = await application(request);
    if (!request.bodyUsed) await drain(request.body);
    await new Promise(setImmediate);
    // None when a WebSocket was opened.
    response?.headers.set("connection", "close");
    return response;
  };
}

async function drain(body: ReadableStream<Uint8Array> | null): Promise<void> {
  let bytes = 0;
  try {
    for await (const { length } of body ?? []) {
      bytes += length;
      if (bytes > drainedBytes) return;
    }
  } catch {
    // The client has gone, or Bun has answered 400 or 413 itself: nobody takes ours.
  }
}

/** Stands before an application of any kind and does what an option asks for all requests. */
export class Gate {
  #server: Server<unknown> | undefined;
  #seen = 0;
  #closing = false;
  #lastRequest = 0;
  readonly #root: string;
  readonly #headers: readonly (readonly [string, string])[];
  /** The request as it came in, of one whose path was changed: the server knows that one only. */
  readonly #originals = new WeakMap<Request, Request>();
  readonly #passes: boolean;

  constructor(
    private readonly options: GateOptions,
    /** Called once, with the last request of `limitMaxRequests`. */
    private readonly enough: () => void,
  ) {
    this.#root = options.rootPath?.replace(/\/+$/, "") ?? "";
    this.#headers = options.headers;
    const { limitConcurrency, limitMaxRequests } = options;
    this.#passes = !this.#root && !this.#headers.length && !limitConcurrency && !limitMaxRequests;
  }

  /**
   * Tells it the server, as soon as there is one. `addressOf` knows a client whom the server takes for another.
   */
  attach(server: Server<unknown>, addressOf?: (seen: SocketAddress | null) => SocketAddress | null): void {
    this.#server = server;
    const { requestIP, timeout, upgrade } = server;
    server.requestIP = (request) => {
      const seen = requestIP.call(server, this.#originals.get(request) ?? request);
      return addressOf ? addressOf(seen) : seen;
    };
    server.timeout = (request, seconds) =>
      timeout.call(server, this.#originals.get(request) ?? request, seconds);
    server.upgrade = ((request, ...options) =>
      upgrade.call(server, this.#originals.get(request) ?? request, ...options)) as typeof upgrade;
  }

  handle(request: Request, application: (request: Request) => Answer): Answer {
    const { headers } = request;
    if (headers.get("content-length")?.includes(",")) return this.#refuse(request, twoLengths());
    const next = headers.get("transfer-encoding") === null ? application : lastOne(application);
    if (this.#passes && !this.#closing) return next(request);
    this.#lastRequest = performance.now();
    const { limitConcurrency, limitMaxRequests } = this.options;
    this.#seen += 1;
    if (this.#seen === limitMaxRequests) this.enough();
    // The one at hand is among the pending ones.
    if (limitConcurrency && (this.#server?.pendingRequests ?? 0) > limitConcurrency) {
      const headers = { "retry-after": "1", connection: "close" };
      return this.#refuse(request, new Response(null, { status: 503, headers }));
    }
    const answer = next(this.#root ? this.#withoutRoot(request) : request);
    return answer instanceof Promise
      ? answer.then((response) => this.#finish(response))
      : this.#finish(answer);
  }

  /** From now on each answer is the last one of its connection. */
  close(): void {
    this.#closing = true;
  }

  /** Resolves when no request has come for a while, so that hardly a client is cut off while it sends one. */
  async quiet(quietMilliseconds: number, longestMilliseconds: number): Promise<void> {
    const began = performance.now();
    this.#lastRequest = began;
    for (;;) {
      const now = performance.now();
      if (now - this.#lastRequest >= quietMilliseconds || now - began >= longestMilliseconds) return;
      await Bun.sleep(Math.min(20, quietMilliseconds));
    }
  }

  #refuse(request: Request, answer: Response): Response {
    this.options.refused?.(request, answer);
    return this.#finish(answer);
  }

  #withoutRoot(request: Request): Request {
    const url = new URL(request.url);
    const { pathname } = url;
    if (pathname !== this.#root && !pathname.startsWith(`${this.#root}/`)) return request;
    url.pathname = pathname.slice(this.#root.length) || "/";
    const inner = new Request(url, request);
    this.#originals.set(inner, request);
    return inner;
  }

  #finish(response: Response): Response {
    if (this.#headers.length === 0 && !this.#closing) return response;
    // Set instead of what the application says, and more than once where it is given so.
    for (const [name] of this.#headers) response.headers.delete(name);
    for (const [name, value] of this.#headers) response.headers.append(name, value);
    if (this.#closing) response.headers.set("connection", "close");
    return response;
  }
}
