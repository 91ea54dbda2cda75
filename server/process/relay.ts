import { connect, createServer, type Socket } from "node:net";
import type { SocketAddress } from "bun";
import { SvcError } from "../../platform/errors.ts";

const loopback = "127.0.0.1";
/** How long a client may take to read an answer after our server has closed the connection. */
const lingerMilliseconds = 30_000;
/** How long a client may go on sending after it was sent the answer. */
const unreadMilliseconds = 1000;

/** The client of a connection that the server sees only indirectly. */
export interface Client {
  address: SocketAddress;
  /** Stops forwarding what the client sends. */
  ignoreRest(): void;
}

/** A client on a Unix socket is a program on this machine, and its connection is not forwarded. */
export const localClient: Client = {
  address: { address: loopback, family: "IPv4", port: 0 },
  ignoreRest() {},
};

/**
 * Connections that we forward to a port of our own, and what is known of their clients, by the ports there. Every user of
 * this machine can connect to that port: with the port of one of these connections from another address of the loopback
 * network, for example.
 */
export class Forwarded<T extends object> {
  readonly #clients = new Map<number, T & Client>();
  /** Clients that may not have been sent everything. */
  readonly #unsent = new Set<Socket>();
  #allSent = () => {};

  /** Resolves when every client was sent all that our server has answered, and the end of its connection. */
  async flush(): Promise<void> {
    if (this.#unsent.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#allSent = resolve;
    });
  }

  /** Forwards the bytes of a connection to one of our ports, and the answers back. */
  forward(client: Socket, port: number, about: T): void {
    const ignoreRest = () => {
      client
        .removeAllListeners("data")
        .on("data", () => {})
        .resume();
    };
    client.pause();
    this.#unsent.add(client);
    const sent = () => {
      this.#unsent.delete(client);
      if (this.#unsent.size === 0) this.#allSent();
    };
    const known = { ...about, address: addressOfSocket(client), ignoreRest };
    const target = { port, host: loopback, localAddress: loopback, allowHalfOpen: true, noDelay: true };
    const to = connect(target, () => {
      if (client.destroyed || to.localPort === undefined) return end();
      const { localPort } = to;
      this.#clients.set(localPort, known);
      // The port may belong to another program as soon as the connection is closed.
      const forget = () => this.#clients.delete(localPort);
      to.once("end", forget).once("close", forget);
      forwardBytes(client, to);
      forwardBytes(to, client);
    });
    const end = () => {
      client.destroy();
      to.destroy();
    };
    let isFinishing = false;
    const finish = () => {
      if (isFinishing) return;
      isFinishing = true;
      // A client that is still sending has been refused early, as with 413. With unread bytes, closing would reset the
      // connection, and the client might never see the answer.
      ignoreRest();
      client.end(() => {
        sent();
        setTimeout(end, unreadMilliseconds).unref();
      });
      setTimeout(end, lingerMilliseconds).unref();
    };
    client.on("error", end).on("close", end).on("close", sent);
    // Our server ends only connections that are over, whether or not the client ends its side.
    to.on("end", finish).on("error", finish).on("close", finish);
  }

  /** The client of a connection that the server sees, undefined if it is not one of ours. */
  of(seen: SocketAddress | null): (T & Client) | undefined {
    return seen?.address === loopback ? this.#clients.get(seen.port) : undefined;
  }
}

/** Like `from.pipe(to)`, which cut throughput by 10 %. */
function forwardBytes(from: Socket, to: Socket): void {
  from.on("data", (bytes) => {
    if (!to.write(bytes)) from.pause();
  });
  to.on("drain", () => from.resume());
  from.on("end", () => to.end());
  from.resume();
}

/**
 * A refusal that ends its connection, such as 413, may be for a client that is still sending. Bun closes the connection
 * then, and forwarding more to it would fail before the answer has been read. Other answers may be sent while the
 * application still reads the body.
 */
export function beforeRest(
  { headers }: Request,
  answer: Response | Promise<Response>,
  client: Client,
): Response | Promise<Response> {
  if (!headers.has("transfer-encoding") && !headers.has("content-length")) return answer;
  return Promise.resolve(answer).then(async (response) => {
    // Undefined when a WebSocket was opened.
    if (response?.status >= 400 && response.headers.get("connection") === "close") {
      client.ignoreRest();
      // Lets the server read what was forwarded: with unread bytes, it would reset the connection.
      await new Promise(setImmediate);
    }
    return response;
  });
}

export interface Relay {
  /** The client of a connection that the server sees, undefined if it is not one of ours. */
  clientOf(seen: SocketAddress | null): Client | undefined;
  /** Forwards new connections to this port; open ones stay where they are. */
  lead(port: number): void;
  /** Accepts no more connections; open ones continue. */
  close(): void;
  /** Resolves when all answers were sent, after our server has ended its connections. */
  flush(): Promise<void>;
}

/**
 * Accepts connections on an inherited descriptor, and forwards their bytes to our own server on the loopback address:
 * Bun.serve cannot listen on a descriptor, but node:net can.
 *
 * @throws SvcError when the descriptor is not listening
 */
export async function relay(fd: number, first: number): Promise<Relay> {
  let port = first;
  const forwarded = new Forwarded();
  const server = createServer({ allowHalfOpen: true }, (client) => forwarded.forward(client, port, {}));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ fd }, resolve);
  try {
    await promise;
  } catch (cause) {
    throw new SvcError("configuration", `--fd ${fd} is not a listening socket`, { cause });
  }
  return {
    clientOf: (seen) => forwarded.of(seen),
    lead: (next) => {
      port = next;
    },
    close: () => void server.close(),
    flush: () => forwarded.flush(),
  };
}

/** A client on a Unix socket that we inherited has no address. */
function addressOfSocket({ remoteAddress, remotePort = 0, remoteFamily }: Socket): SocketAddress {
  if (!remoteAddress) return localClient.address;
  return { address: remoteAddress, family: remoteFamily === "IPv6" ? "IPv6" : "IPv4", port: remotePort };
}
