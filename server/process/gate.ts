import type { Server, SocketAddress } from "bun";
import { refusal } from "../http/host.ts";
import { setTlsClient, tlsClientOf } from "../http/tls_client.ts";
import { beforeRest, type Client } from "./relay.ts";

export interface GateOptions {
  /** Set if the server ends TLS. */
  sslCertfile?: string;
  /** Removed from the start of each path that has it. */
  rootPath?: string;
  /** Set on each answer. */
  headers: readonly (readonly [string, string])[];
  /** Called for requests that the application never sees. */
  refused?: (request: Request, answer: Response) => void;
}

type Answer = Response | Promise<Response>;
/** The client of a connection that the server sees; undefined if nobody may use it. */
type ClientOf = (seen: SocketAddress | null) => Client | undefined;

/** How much of a chunked body Bun reads if the application ignores it. */
const drainedBytes = 1024 * 1024;

/**
 * Handles a chunked request. Bun takes what follows the last chunk (a trailer, or the rest of a malformed body) for
 * another request and answers it with 400, which a proxy would hand to another client. So the body is read first,
 * anything after it in the same packet is checked, and the answer ends the connection.
 */
function lastOne(application: (request: Request) => Answer): (request: Request) => Promise<Response> {
  return async (request) => {
    const response = await application(request);
    if (!request.bodyUsed) await drain(request.body);
    await new Promise(setImmediate);
    // Undefined when a WebSocket was opened.
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
    // The client has disconnected, or Bun has answered 400 or 413: our answer is not used.
  }
}

const quietStepMilliseconds = 20;

/**
 * Resolves when nothing has happened for a while, or after `longestMilliseconds`. It counts steps, because what arrives
 * while the machine is too busy to run this process is seen only afterwards.
 *
 * @param happened whether anything did since the last call
 */
export async function awaitQuiet(
  happened: () => boolean,
  quietMilliseconds: number,
  longestMilliseconds: number,
): Promise<void> {
  const began = performance.now();
  happened();
  for (let quiet = 0; quiet < quietMilliseconds;) {
    await Bun.sleep(quietStepMilliseconds);
    if (performance.now() - began >= longestMilliseconds) return;
    quiet = happened() ? 0 : quiet + quietStepMilliseconds;
  }
}

/** Runs in front of any application and applies the options that affect all requests. */
export class Gate {
  #clientOf: ClientOf | undefined;
  #seenBy: Server<unknown>["requestIP"] = () => null;
  /** For a server that sees only our own connections: the addresses of their clients. */
  readonly #addresses = new WeakMap<Request, SocketAddress>();
  readonly #listeners: Server<unknown>[] = [];
  readonly #upgrades = new WeakMap<Server<unknown>, Server<unknown>["upgrade"]>();
  #closing = false;
  /** How many callers wait in `settle`. */
  #settling = 0;
  /** Set by each request while connections are closed. */
  #requested = false;
  readonly #root: string;
  /** The original request of one whose path was rewritten: the server knows only the original. */
  readonly #originals = new WeakMap<Request, Request>();
  readonly #passes: boolean;

  constructor(private readonly options: GateOptions) {
    this.#root = options.rootPath?.replace(/\/+$/, "") ?? "";
    this.#passes = !this.#root && options.headers.length === 0;
  }

  /** Sets the server as soon as there is one. `clientOf` maps a connection through the relay to its client. */
  attach(server: Server<unknown>, clientOf?: ClientOf): void {
    this.#clientOf = clientOf;
    this.#seenBy = server.requestIP.bind(server);
    this.#adapt(server);
  }

  /** Makes the methods of a server know requests whose path was rewritten, or that were forwarded from another port. */
  #adapt(server: Server<unknown>): void {
    const { requestIP, timeout } = server;
    this.#upgrades.set(server, server.upgrade.bind(server));
    server.requestIP = (request) => {
      const tls = tlsClientOf(request);
      if (tls) return tls.address;
      const original = this.#originals.get(request) ?? request;
      return this.#addresses.get(original) ?? requestIP.call(server, original);
    };
    server.timeout = (request, seconds) =>
      timeout.call(server, this.#originals.get(request) ?? request, seconds);
    server.upgrade = ((request: Request, options?: object) => {
      const original = this.#originals.get(request) ?? request;
      // Elysia knows only the first server, and Bun throws for a request of another one.
      const [forwarded] = tlsClientOf(request) ? this.#listeners : [];
      return this.#upgrades.get(forwarded ?? server)!(original, options as never);
    }) as typeof server.upgrade;
  }

  handle(request: Request, application: (request: Request) => Answer): Answer {
    if (!this.#clientOf || tlsClientOf(request)) return this.#handle(request, application);
    const client = this.#clientOf(this.#seenBy(request));
    if (!client)
      return this.#refuse(request, new Response(null, { status: 403, headers: { connection: "close" } }));
    this.#addresses.set(request, client.address);
    return beforeRest(request, this.#handle(request, application), client);
  }

  #handle(received: Request, application: (request: Request) => Answer): Answer {
    const request = received.url.startsWith("/") ? this.#withHost(received) : received;
    const { headers } = request;
    // Two lengths, even if they are equal: a proxy may use the other one (RFC 9112, 6.3).
    if (headers.get("content-length")?.includes(","))
      return this.#refuse(request, refusal(400, "invalid_input", "The request has two Content-Lengths"));
    const next = headers.get("transfer-encoding") === null ? application : lastOne(application);
    if (this.#passes && !this.#closes) return next(request);
    this.#requested = true;
    const answer = next(this.#root ? this.#withoutRoot(request) : request);
    return answer instanceof Promise
      ? answer.then((response) => this.#finish(response))
      : this.#finish(answer);
  }

  /** Another server, whose requests go through this gate as well. */
  alsoServes(server: Server<unknown>): void {
    this.#listeners.push(server);
    this.#adapt(server);
  }

  /** From now on each answer closes its connection. */
  close(): void {
    this.#closing = true;
  }

  get #closes(): boolean {
    return this.#closing || this.#settling > 0;
  }

  /**
   * Each answer closes its connection, until no request has arrived for a while: few clients are then cut off while sending
   * one, if their connections end.
   */
  async settle(quietMilliseconds: number, longestMilliseconds: number): Promise<void> {
    this.#settling += 1;
    const hasRequest = () => {
      const requested = this.#requested;
      this.#requested = false;
      return requested;
    };
    await awaitQuiet(hasRequest, quietMilliseconds, longestMilliseconds);
    this.#settling -= 1;
  }

  #refuse(request: Request, answer: Response): Response {
    this.options.refused?.(request, answer);
    return this.#finish(answer);
  }

  #withoutRoot(request: Request): Request {
    const url = URL.parse(request.url);
    // With an invalid Host, there is only a path: the application answers.
    if (!url) return request;
    const { pathname } = url;
    if (pathname !== this.#root && !pathname.startsWith(`${this.#root}/`)) return request;
    url.pathname = pathname.slice(this.#root.length) || "/";
    return this.#rewritten(request, url.href);
  }

  /**
   * Completes the URL of a request without Host, which Bun accepts only in HTTP/1.0: health checks of load balancers send
   * it. With an invalid Host, Bun also passes on a path only.
   */
  #withHost(request: Request): Request {
    if (request.headers.has("host")) return request;
    const scheme = this.options.sslCertfile === undefined || tlsClientOf(request) ? "http" : "https";
    return this.#rewritten(request, `${scheme}://localhost${request.url}`);
  }

  #rewritten(request: Request, url: string): Request {
    const inner = new Request(url, request);
    // Without Host and below the root path, it is rewritten twice.
    this.#originals.set(inner, this.#originals.get(request) ?? request);
    const tls = tlsClientOf(request);
    if (tls) setTlsClient(inner, tls);
    return inner;
  }

  #finish(response: Response): Response {
    const { headers } = this.options;
    if (headers.length === 0 && !this.#closes) return response;
    // Replaces the application's values, and keeps repeated headers.
    for (const [name] of headers) response.headers.delete(name);
    for (const [name, value] of headers) response.headers.append(name, value);
    if (this.#closes) response.headers.set("connection", "close");
    return response;
  }
}
