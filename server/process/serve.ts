import { chmodSync } from "node:fs";
import type { Server, SocketAddress } from "bun";
import type { AnyElysia } from "elysia";
import { ConfigurationError, SvcError } from "../../platform/errors.ts";
import { readHttpsUrls } from "../http/https_urls.ts";
import { Gate } from "./gate.ts";
import { placeOf, type StartOptions } from "./options.ts";
import { localAddress, relay } from "./relay.ts";
import { type FetchApp, isElysia, type Service } from "./service.ts";
import {
  ignoreNewConnections,
  listeningSockets,
  setBacklog,
  shareNewConnections,
  takeNewConnections,
} from "./socket.ts";
import { tlsOf } from "./tls.ts";
import { takeOver } from "./unix_socket.ts";

/** How long no request must have come before a process that shares its port goes, and the longest wait for that. */
const quietMilliseconds = 100;
const longestQuietMilliseconds = 1000;
/** How long a `drain` has at least: what it lets go is answered, also without grace. */
const leastDrainMilliseconds = 1000;
const defaultUdsMode = 0o660;
/** Bun looks at its connections every so often, and ends one up to so much before its time. */
const timerSeconds = 4;
const longestIdleSeconds = 255;

export interface Serving {
  /** Where it listens, as a person types it. */
  address: string;
  /** It goes on, and whoever asks is told that it will be gone soon: other clients, and these ones next time, go elsewhere. */
  leave(): void;
  /**
   * Reads certificate, key and authorities again. Connections that are open go on with those that they began with.
   * @throws ConfigurationError when the files cannot be used: the old ones are served then
   */
  renewCertificate?(): Promise<void>;
  /** Finishes what is under way, within the grace time; then cuts. */
  stop(): Promise<void>;
}

/**
 * Serves an application as the options say. `enough` is called when it has answered as many requests as it may.
 * @throws ConfigurationError, SvcError when it cannot listen
 */
export async function serve(
  { app, refused, leave, drain }: Service,
  options: StartOptions,
  enough: () => void,
): Promise<Serving> {
  const gate = new Gate({ ...options, headers: options.header.map(parseHeader), refused }, enough);
  if (options.uds !== undefined) await takeOver(options.uds);
  const others = listeningSockets();
  // Elysia's types say no more of a handler than that it is a function.
  if (isElysia(app)) app.wrap((next, request) => () => gate.handle(request, next as unknown as Handler));
  let server = listen(app, gate, options);
  let sockets = listeningSockets().filter((fd) => !others.includes(fd));
  /** With the certificates of before, until their last connection has ended. */
  const previous = new Set<Server<unknown>>();
  const inner = options.fd === undefined ? undefined : await relay(options.fd, server.port ?? 0);
  const attach = () =>
    gate.attach(server, inner?.addressOf ?? (options.uds === undefined ? undefined : onThisMachine));
  attach();
  const renewCertificate = async () => {
    const [before, old, listening] = [server, sockets, listeningSockets()];
    server = listen(app, gate, options);
    previous.add(before);
    attach();
    if (options.backlog !== undefined) setBacklog(options.backlog);
    sockets = listeningSockets().filter((fd) => !listening.includes(fd));
    if (inner) inner.lead(server.port ?? 0);
    else {
      takeNewConnections(sockets);
      ignoreNewConnections(old);
    }
    // What was about to come in on the old one still does.
    await Bun.sleep(quietMilliseconds);
    void before.stop(false).then(() => previous.delete(before));
    shareNewConnections(sockets);
  };
  if (options.uds !== undefined) chmodSync(options.uds, options.udsMode ?? defaultUdsMode);
  if (options.backlog !== undefined && !setBacklog(options.backlog)) {
    throw new ConfigurationError(["--backlog: this system does not let us set it"]);
  }
  return {
    address: placeOf({ ...options, port: server.port ?? options.port }),
    ...(options.sslCertfile === undefined || options.supervised || options.uds !== undefined
      ? {}
      : { renewCertificate }),
    leave() {
      gate.close();
      leave?.();
    },
    async stop() {
      inner?.close();
      gate.close();
      // Somebody else takes what comes now.
      if (options.supervised || options.timeoutDrain > 0) {
        if (!inner) ignoreNewConnections();
        await gate.quiet(quietMilliseconds, longestQuietMilliseconds);
      }
      const stop = async (now: boolean) => {
        const current = isElysia(app) ? app.stop(now) : server.stop(now);
        await Promise.all([current, ...[...previous].map((one) => one.stop(now))]);
      };
      // Ends requests that are held, while their connections are there: Elysia's stop hooks run too late for that. Another
      // application may have none.
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

function listen(app: FetchApp | AnyElysia, gate: Gate, options: StartOptions): Server<unknown> {
  const { host, port, uds, fd, supervised, timeoutKeepAlive } = options;
  const place =
    uds !== undefined
      ? { unix: uds }
      : fd !== undefined
        ? { hostname: "127.0.0.1", port: 0, reusePort: false }
        : // Elysia's own default is true: two servers would then share a port silently.
          { hostname: host, port, reusePort: supervised || options.sslCertfile !== undefined };
  const idleTimeout = Math.min(timeoutKeepAlive + timerSeconds, longestIdleSeconds);
  const settings = { ...place, idleTimeout, tls: tlsOf(options), development: false };
  try {
    if (!isElysia(app)) {
      const fetch = (request: Request, server: Server<unknown>) =>
        gate.handle(request, (inner) => app.fetch(inner, server));
      const error = () => new Response(null, { status: 500 });
      return Bun.serve({ ...settings, fetch, error } as Bun.Serve.Options<unknown>);
    }
    if (settings.tls !== undefined) readHttpsUrls(app);
    const listeners = process.listeners("beforeExit");
    // Elysia hands on what it does not know; its types know of no Unix socket.
    app.listen(settings as Parameters<typeof app.listen>[0]);
    // Each time, it would have one more of these stop the server at the end of the process, which we do.
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
    return new SvcError("configuration", `--uds: ${uds} cannot be listened on`, { cause });
  }
  const reason =
    code === "EADDRINUSE"
      ? "is in use: choose another one with --port"
      : code === "EACCES"
        ? "requires more privileges: choose another one with --port"
        : "cannot be listened on";
  return new SvcError("configuration", `Port ${port} of ${host} ${reason}`, { cause });
}

function onThisMachine(): SocketAddress {
  return localAddress;
}

function parseHeader(text: string): [string, string] {
  const [, name = "", value = ""] = text.match(/^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/) ?? [];
  return [name, value];
}
