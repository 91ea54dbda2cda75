import type { X509Certificate } from "node:crypto";
import { createServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import type { Server } from "bun";
import { hostInUrl } from "../../platform/address.ts";
import { SvcError } from "../../platform/errors.ts";
import { setTlsClient, type TlsClient } from "../http/tls_client.ts";
import { awaitQuiet } from "./gate.ts";
import type { StartOptions } from "./options.ts";
import { beforeRest, Forwarded } from "./relay.ts";
import type { Service } from "./service.ts";
import { ignoreNewConnections, listeningSockets, shareNewConnections, takeNewConnections } from "./socket.ts";
import { mtlsFilesOf, tlsOf } from "./tls.ts";

// Bun.serve can require client certificates, but its handlers cannot see them. So node:tls ends TLS here and forwards the
// decrypted bytes to a Bun.serve of this process on the loopback address. A request's certificate is found by the port of
// the forwarded connection; a connection that is not ours is refused.
//
// The handshake accepts any certificate, or none: what it stands for is decided on each request, because it may expire or
// be revoked while the connection is open, and because an alert would tell an attacker what is wrong with it.

const handshakeMilliseconds = 10_000;
/** Handshakes in progress; further connections are closed, oldest first. */
const mostHandshakes = 1000;
/** Longer chains are cut off: platform/x509/chain.ts accepts no longer ones. */
const mostCertificates = 10;
/** As in serve.ts: how long connections that were about to be accepted may take. */
const quietMilliseconds = 100;
/** How long a process that stops waits for the first requests of its connections. */
const settleMilliseconds = 2000;

export interface MtlsListener {
  address: string;
  /** Handles the requests. */
  readonly server: Server<unknown>;
  /** Reloads certificate and key. Open connections keep the old ones. @throws ConfigurationError */
  renewCertificate(): Promise<void>;
  /** Directs all new connections to this process; then `share` ends that. */
  takeNewConnections(): void;
  shareNewConnections(): void;
  ignoreNewConnections(): void;
  /**
   * Resolves when every connection so far has sent its first request, or after some time: a handshake takes several
   * messages, and only its client knows for what.
   */
  settle(): Promise<void>;
  /** Accepts no more connections and finishes requests; with `now`, closes all connections. */
  stop(now: boolean): Promise<void>;
}

type InnerSettings = Pick<Bun.Serve.Options<unknown>, "idleTimeout" | "maxRequestBodySize"> & {
  websocket?: object;
};

/**
 * Listens on --mtls-port. `fetch` handles requests, after `tlsClientOf` knows their connection.
 * @throws ConfigurationError for unusable files, SvcError for a port that is taken
 */
export async function listenMtls(
  options: StartOptions & { mtlsPort: number },
  settings: InnerSettings,
  fetch: (request: Request, server: Server<unknown>) => Response | Promise<Response>,
  failed: NonNullable<Service["handshakeFailed"]>,
): Promise<MtlsListener> {
  const forwarded = new Forwarded<Pick<TlsClient, "chain">>();
  const inner = Bun.serve({
    ...settings,
    hostname: "127.0.0.1",
    port: 0,
    reusePort: false,
    development: false,
    fetch(request, server) {
      const client = forwarded.of(portOf.call(server, request));
      if (!client) return new Response(null, { status: 403, headers: { connection: "close" } });
      setTlsClient(request, client);
      return beforeRest(request, fetch(request, server), client);
    },
    error: () => new Response(null, { status: 500 }),
  } as Bun.Serve.Options<unknown>) as Server<unknown>;
  // Its users get the client's address instead, see Gate.
  const portOf = inner.requestIP;
  const open = new Set<TLSSocket>();
  const handshakes = new Set<TLSSocket>();
  /** Connections without a request so far. */
  const silent = new Set<TLSSocket>();
  let connected = false;

  function forward(client: TLSSocket): void {
    // Unknown once the connection has failed.
    const { remoteAddress } = client;
    open.add(client);
    client.once("data", () => silent.delete(client));
    client.on("close", () => open.delete(client));
    client.on("error", ({ code }: NodeJS.ErrnoException) => {
      // Such as an attempt to renegotiate.
      if (code?.startsWith("ERR_SSL")) failed(code, remoteAddress);
    });
    forwarded.forward(client, inner.port!, { chain: chainOf(client) });
  }

  async function listen(): Promise<{ server: TlsServer; sockets: number[] }> {
    const { key, cert } = tlsOf(mtlsFilesOf(options))!;
    const server = createServer(
      {
        key: key as string,
        cert: cert as string,
        minVersion: "TLSv1.2",
        ALPNProtocols: ["http/1.1"],
        requestCert: true,
        rejectUnauthorized: false,
        handshakeTimeout: handshakeMilliseconds,
        allowHalfOpen: true,
      },
      (client) => {
        handshakes.delete(client);
        forward(client);
      },
    );
    server.on("connection", (client: TLSSocket) => {
      const [oldest] = handshakes;
      if (handshakes.size >= mostHandshakes && oldest) {
        // Not when it closes: several connections may arrive before that.
        handshakes.delete(oldest);
        failed("too many handshakes", oldest.remoteAddress);
        oldest.destroy();
      }
      handshakes.add(client);
      silent.add(client);
      connected = true;
      client.once("close", () => {
        handshakes.delete(client);
        silent.delete(client);
      });
      // Before the handshake is over, errors are reported by the server.
      client.on("error", () => {});
    });
    server.on("tlsClientError", (error: NodeJS.ErrnoException, client: TLSSocket) => {
      // A client that only connects and disconnects is a health check.
      if (error.code !== "ECONNRESET") failed(error.code ?? error.name, client.remoteAddress);
      client.destroy();
    });
    const before = listeningSockets();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    const { host, mtlsPort } = options;
    server.listen({ host, port: mtlsPort, backlog: 512, reusePort: true }, resolve);
    try {
      await promise;
    } catch (cause) {
      throw new SvcError("configuration", `--mtls-port: cannot listen on port ${mtlsPort} of ${host}`, {
        cause,
      });
    }
    return { server, sockets: listeningSockets().filter((fd) => !before.includes(fd)) };
  }

  let current = await listen().catch(async (error: unknown) => {
    await inner.stop(true);
    throw error;
  });
  const { port } = current.server.address() as { port: number };
  return {
    address: `https://${hostInUrl(options.host)}:${port}`,
    server: inner,
    async renewCertificate() {
      const old = current;
      current = await listen();
      takeNewConnections(current.sockets);
      ignoreNewConnections(old.sockets);
      await Bun.sleep(quietMilliseconds);
      old.server.close();
      shareNewConnections(current.sockets);
    },
    takeNewConnections: () => takeNewConnections(current.sockets),
    shareNewConnections: () => shareNewConnections(current.sockets),
    ignoreNewConnections: () => ignoreNewConnections(current.sockets),
    async settle() {
      const hasConnection = () => {
        const isBusy = silent.size > 0 || connected;
        connected = false;
        return isBusy;
      };
      await awaitQuiet(hasConnection, quietMilliseconds, settleMilliseconds);
    },
    async stop(now) {
      current.server.close();
      for (const client of handshakes) client.destroy();
      if (now) for (const client of open) client.destroy();
      await inner.stop(now);
      if (!now) await forwarded.flush();
    },
  };
}

function chainOf(client: TLSSocket): Uint8Array[] {
  const chain: Uint8Array[] = [];
  let next: X509Certificate | undefined = client.getPeerX509Certificate?.();
  while (next && chain.length < mostCertificates) {
    chain.push(new Uint8Array(next.raw));
    next = next.issuerCertificate;
  }
  return chain;
}
