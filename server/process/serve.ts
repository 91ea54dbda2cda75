import { chmodSync } from "node:fs";
import { isIP } from "node:net";
import type { Server } from "bun";
import type { AnyElysia } from "elysia";
import { websocket } from "elysia/ws";
import { SvcError } from "../../platform/errors.ts";
import { readHttpsUrls } from "../http/https_urls.ts";
import { Gate } from "./gate.ts";
import { listenMtls, type MtlsListener } from "./mtls.ts";
import { placeOf, type StartOptions } from "./options.ts";
import { localClient, relay } from "./relay.ts";
import { type FetchApp, isElysia, type Service } from "./service.ts";
import { ignoreNewConnections, listeningSockets, shareNewConnections, takeNewConnections } from "./socket.ts";
import { tlsOf } from "./tls.ts";
import { replaceStaleSocket } from "./unix_socket.ts";

/** How long a server must be without requests before another one replaces it, and the longest wait for that. */
const quietMilliseconds = 100;
const longestQuietMilliseconds = 1000;
/** The minimum time for `drain`: requests it releases are answered even without grace time. */
const leastDrainMilliseconds = 1000;
const defaultUdsMode = 0o660;
/** Bun checks its connections periodically, and may end one this much early. */
const timerSeconds = 4;
const longestIdleSeconds = 255;

export interface Serving {
  /** Where it listens, as users write it. */
  address: string;
  /** Where clients may authenticate with certificates. */
  mtlsAddress?: string;
  /** Keeps serving but reports that it will stop soon, so that load balancers and clients go elsewhere. */
  leave(): void;
  /**
   * Reloads certificate, key and authorities. Open connections keep the old ones.
   * @throws ConfigurationError when the files are unusable: the old ones stay in use
   */
  renewCertificate?(): Promise<void>;
  /** Directs all new connections to this process, which replaces another one, until `shareNewConnections`. */
  takeNewConnections(): void;
  shareNewConnections(): void;
  /** Finishes pending requests within the grace time, then closes the connections. */
  stop(): Promise<void>;
}

/**
 * Serves an application with these options.
 * @throws ConfigurationError, SvcError when it cannot listen
 */
export async function serve(
  { app, refused, leave, drain, handshakeFailed = () => {} }: Service,
  options: StartOptions,
): Promise<Serving> {
  const gate = new Gate({ ...options, headers: options.header.map(parseHeader), refused });
  if (options.uds !== undefined) await replaceStaleSocket(options.uds);
  const others = listeningSockets();
  // Elysia types a handler only as a function.
  if (isElysia(app)) app.wrap((next, request) => () => gate.handle(request, next as unknown as Handler));
  let server = listen(app, gate, options);
  let sockets = listeningSockets().filter((fd) => !others.includes(fd));
  /** Servers with previous certificates, until their last connection ends. */
  const previous = new Set<Server<unknown>>();
  const inner = options.fd === undefined ? undefined : await relay(options.fd, server.port ?? 0);
  const attach = () =>
    gate.attach(server, inner?.clientOf ?? (options.uds === undefined ? undefined : () => localClient));
  attach();
  let mtls: MtlsListener | undefined;
  if (options.mtlsPort !== undefined) {
    const { mtlsPort } = options;
    try {
      mtls = await listenMtls(
        { ...options, mtlsPort },
        innerSettings(app, options),
        handler(app, gate),
        handshakeFailed,
      );
    } catch (error) {
      await server.stop(true);
      throw error;
    }
    gate.alsoServes(mtls.server);
  }
  const hasCertificate = options.sslCertfile !== undefined && options.uds === undefined;
  const renewCertificate = async () => {
    await mtls?.renewCertificate();
    if (!hasCertificate) return;
    const [before, old, listening] = [server, sockets, listeningSockets()];
    server = listen(app, gate, options);
    previous.add(before);
    attach();
    sockets = listeningSockets().filter((fd) => !listening.includes(fd));
    if (inner) inner.lead(server.port ?? 0);
    else {
      takeNewConnections(sockets);
      ignoreNewConnections(old);
    }
    // Connections that were about to be accepted by the old server still are; it cuts off those that are idle when it stops.
    await gate.settle(quietMilliseconds, longestQuietMilliseconds);
    void before.stop(false).then(() => previous.delete(before));
    shareNewConnections(sockets);
  };
  if (options.uds !== undefined) chmodSync(options.uds, options.udsMode ?? defaultUdsMode);
  return {
    address: placeOf({ ...options, port: server.port ?? options.port }),
    mtlsAddress: mtls?.address,
    renewCertificate: !options.supervised && (mtls || hasCertificate) ? renewCertificate : undefined,
    takeNewConnections() {
      if (!inner) takeNewConnections(sockets);
      mtls?.takeNewConnections();
    },
    shareNewConnections() {
      if (!inner) shareNewConnections(sockets);
      mtls?.shareNewConnections();
    },
    leave() {
      gate.close();
      leave?.();
    },
    async stop() {
      inner?.close();
      gate.close();
      // Another process accepts new connections now.
      if (options.supervised || options.timeoutDrain > 0) {
        if (!inner) ignoreNewConnections(sockets);
        mtls?.ignoreNewConnections();
        await mtls?.settle();
        await gate.settle(quietMilliseconds, longestQuietMilliseconds);
      }
      const stop = async (now: boolean) => {
        const current = isElysia(app) ? app.stop(now) : server.stop(now);
        await Promise.all([current, mtls?.stop(now), ...[...previous].map((one) => one.stop(now))]);
        if (!now) await inner?.flush();
      };
      // Ends held requests while their connections are open: Elysia's stop hooks run too late for that. Other
      // applications may have no `drain`.
      const drained = drain?.();
      let cut = false;
      const late = async () => {
        await Promise.all([
          Bun.sleep(options.timeoutGracefulShutdown * 1000),
          Promise.race([drained, Bun.sleep(leastDrainMilliseconds)]),
        ]);
        cut = true;
        await stop(true);
      };
      const inOrder = async () => {
        await drained;
        if (!cut) await stop(false);
      };
      await Promise.race([late(), inOrder()]);
    },
  };
}

type Handler = (request: Request) => Response | Promise<Response>;

/** How a server of Bun hands requests to the application. */
function handler(app: FetchApp | AnyElysia, gate: Gate) {
  // Elysia's handler goes through the gate, see `wrap`.
  if (isElysia(app)) return (request: Request) => app.fetch(request);
  return (request: Request, server: Server<unknown>) =>
    gate.handle(request, (inner) => app.fetch(inner, server));
}

const idleTimeoutOf = ({ timeoutKeepAlive }: StartOptions) =>
  Math.min(timeoutKeepAlive + timerSeconds, longestIdleSeconds);

function innerSettings(app: FetchApp | AnyElysia, options: StartOptions) {
  const idleTimeout = idleTimeoutOf(options);
  if (!isElysia(app)) return { idleTimeout };
  const { maxRequestBodySize } = app.config.serve ?? {};
  return {
    // As in Elysia's `listen`.
    idleTimeout,
    websocket: { ...app.config.websocket, ...websocket },
    ...(maxRequestBodySize === undefined ? {} : { maxRequestBodySize }),
  };
}

function listen(app: FetchApp | AnyElysia, gate: Gate, options: StartOptions): Server<unknown> {
  const { host, port, uds, fd, supervised } = options;
  const place =
    uds !== undefined
      ? { unix: uds }
      : fd !== undefined
        ? { hostname: "127.0.0.1", port: 0, reusePort: false }
        : // Elysia's own default is true: two servers would then share a port silently.
          { hostname: host, port, reusePort: supervised || options.sslCertfile !== undefined };
  const settings = {
    ...place,
    idleTimeout: idleTimeoutOf(options),
    tls: tlsOf(options),
    development: false,
  };
  try {
    if (!isElysia(app)) {
      const error = () => new Response(null, { status: 500 });
      return Bun.serve({ ...settings, fetch: handler(app, gate), error } as Bun.Serve.Options<unknown>);
    }
    if (settings.tls !== undefined) readHttpsUrls(app);
    const listeners = process.listeners("beforeExit");
    // Elysia passes unknown settings on; its types lack Unix sockets.
    app.listen(settings as Parameters<typeof app.listen>[0]);
    // Each `listen` adds a handler that stops the server at process exit, which we do ourselves.
    for (const listener of process.listeners("beforeExit"))
      if (!listeners.includes(listener)) process.off("beforeExit", listener);
    return app.server as Server<unknown>;
  } catch (cause) {
    throw unlistenable(cause, options);
  }
}

function unlistenable(cause: unknown, { host, port, uds }: StartOptions): SvcError {
  const { code } = cause as { code?: string };
  if (uds !== undefined) {
    return new SvcError("configuration", `--uds: cannot listen on ${uds}`, { cause });
  }
  if (code === "EADDRINUSE" || code === "EACCES") {
    const reason = code === "EADDRINUSE" ? "is in use" : "requires more privileges";
    const detail = `Port ${port} of ${host} ${reason}: choose another one with --port`;
    return new SvcError("configuration", detail, { cause });
  }
  // For a name without an address, Bun's code is that of some earlier error.
  const fault =
    code === "EADDRNOTAVAIL" || isIP(host) === 0
      ? `${host} is not an address of this machine`
      : `Port ${port} of ${host} is not available`;
  return new SvcError("configuration", fault, { cause });
}

function parseHeader(text: string): [string, string] {
  const [, name = "", value = ""] = text.match(/^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/) ?? [];
  return [name, value];
}
