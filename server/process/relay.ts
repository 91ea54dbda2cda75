import { connect, createServer, type Socket, type TcpNetConnectOpts } from "node:net";
import type { SocketAddress } from "bun";
import { SvcError } from "../../platform/errors.ts";

/** A client on a Unix socket is a program on this machine. */
export const localAddress: SocketAddress = { address: "127.0.0.1", family: "IPv4", port: 0 };

const loopback = "127.0.0.1";
/** How long a client may take to read an answer after our server has closed the connection. */
const lingerMilliseconds = 30_000;

/**
 * What is known of the clients of connections that we forward to a port of our own, by their ports there. Every user of this
 * machine can connect to it: with the port of one of these connections from another address of the loopback network, for
 * example.
 */
export class Forwarded<T> {
  readonly #clients = new Map<number, T>();

  /** Connects to one of our ports. */
  connect(port: number, options: Partial<TcpNetConnectOpts>, connected: () => void): Socket {
    return connect({ ...options, host: loopback, port, localAddress: loopback }, connected);
  }

  /** @returns a function that forgets the connection: its port may belong to another program as soon as it is closed */
  add({ localPort }: Socket, client: T): () => void {
    if (localPort === undefined) return () => {};
    this.#clients.set(localPort, client);
    return () => this.#clients.delete(localPort);
  }

  /** The client of a connection that the server sees, undefined if it is not one of ours. */
  of(seen: SocketAddress | null): T | undefined {
    return seen?.address === loopback ? this.#clients.get(seen.port) : undefined;
  }
}

export interface Relay {
  /** The client of a connection that the server sees, undefined if it is not one of ours. */
  addressOf(seen: SocketAddress | null): SocketAddress | undefined;
  /** Forwards new connections to this port; open ones stay where they are. */
  lead(port: number): void;
  /** Accepts no more connections; open ones continue. */
  close(): void;
}

/**
 * Accepts connections on an inherited descriptor, and forwards their bytes to our own server on the loopback address:
 * Bun.serve cannot listen on a descriptor, but node:net can.
 *
 * @throws SvcError when the descriptor is not listening
 */
export async function relay(fd: number, first: number): Promise<Relay> {
  let port = first;
  const forwarded = new Forwarded<SocketAddress>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.pause();
    const inner = forwarded.connect(port, {}, () => {
      const address = client.remoteAddress ? addressOfSocket(client) : localAddress;
      inner.once("close", forwarded.add(inner, address));
      client.pipe(inner).pipe(client);
    });
    const end = () => {
      client.destroy();
      inner.destroy();
    };
    client.on("error", end).on("close", end);
    inner.on("error", end).on("close", () => {
      // Sends pending data first, within a limit; it does not wait for a client that keeps its side open.
      client.destroySoon();
      setTimeout(end, lingerMilliseconds).unref();
    });
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ fd }, resolve);
  try {
    await promise;
  } catch (cause) {
    throw new SvcError("configuration", `--fd ${fd} is not a listening socket`, { cause });
  }
  return {
    addressOf: (seen) => forwarded.of(seen),
    lead: (next) => {
      port = next;
    },
    close: () => void server.close(),
  };
}

export function addressOfSocket({ remoteAddress = "", remotePort, remoteFamily }: Socket): SocketAddress {
  return { address: remoteAddress, family: remoteFamily === "IPv6" ? "IPv6" : "IPv4", port: remotePort ?? 0 };
}
