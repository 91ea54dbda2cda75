import { connect, createServer, type Socket } from "node:net";
import type { SocketAddress } from "bun";
import { SvcError } from "../../platform/errors.ts";

/** A client on a Unix socket is a program on this machine. */
export const localAddress: SocketAddress = { address: "127.0.0.1", family: "IPv4", port: 0 };

/** How long a client may take to read an answer after our server has closed the connection. */
const lingerMilliseconds = 30_000;

export interface Relay {
  /** The client of a connection that the server sees as one of ours. */
  addressOf(seen: SocketAddress | null): SocketAddress | null;
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
  /** Keyed by the local port of the forwarded connection. */
  const clients = new Map<number, SocketAddress>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.pause();
    const inner = connect({ host: "127.0.0.1", port }, () => {
      const { localPort } = inner;
      if (localPort !== undefined) {
        clients.set(localPort, client.remoteAddress ? addressOfSocket(client) : localAddress);
        inner.once("close", () => clients.delete(localPort));
      }
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
    addressOf: (seen) => (seen ? (clients.get(seen.port) ?? seen) : seen),
    lead: (next) => {
      port = next;
    },
    close: () => void server.close(),
  };
}

export function addressOfSocket({ remoteAddress = "", remotePort, remoteFamily }: Socket): SocketAddress {
  return { address: remoteAddress, family: remoteFamily === "IPv6" ? "IPv6" : "IPv4", port: remotePort ?? 0 };
}
