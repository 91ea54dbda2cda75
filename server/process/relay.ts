import { connect, createServer, type Socket } from "node:net";
import type { SocketAddress } from "bun";
import { SvcError } from "../../platform/errors.ts";

/** A client on a Unix socket is a program on this machine. */
export const localAddress: SocketAddress = { address: "127.0.0.1", family: "IPv4", port: 0 };

/** How long a client has for the end of an answer when our server has hung up. */
const lingerMilliseconds = 30_000;

export interface Relay {
  /** Who the client is that the server sees as one of ours. */
  addressOf(seen: SocketAddress | null): SocketAddress | null;
  /** Passes new connections on to this port; those that are open stay where they are. */
  lead(port: number): void;
  /** Takes no more connections; those that are open go on. */
  close(): void;
}

/**
 * Accepts connections on a descriptor that was handed to this process, and passes their bytes on to our own server on
 * the loopback address: Bun.serve can listen on no descriptor, node:net can.
 *
 * @throws SvcError when the descriptor does not listen
 */
export async function relay(fd: number, first: number): Promise<Relay> {
  let port = first;
  /** By the port from which a connection is passed on. */
  const clients = new Map<number, SocketAddress>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.pause();
    const inner = connect({ host: "127.0.0.1", port }, () => {
      const { localPort } = inner;
      if (localPort !== undefined) {
        clients.set(localPort, addressOfSocket(client));
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
      // What is still to be sent goes first, unless nobody takes it; a client that keeps its own side open is not waited for.
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

function addressOfSocket({ remoteAddress, remotePort, remoteFamily }: Socket): SocketAddress {
  if (!remoteAddress) return localAddress;
  return { address: remoteAddress, family: remoteFamily === "IPv6" ? "IPv6" : "IPv4", port: remotePort ?? 0 };
}
