import { connect, createServer, type Socket } from "node:net";
import { listen } from "../listen.ts";

/** A proxy to PostgreSQL that can stop in the middle of a conversation. */
export interface HeldConnection extends Disposable {
  port: number;
  /**
   * Forwards this many more messages of clients, and holds the following ones.
   *
   * @returns a promise that resolves when the first message is held
   */
  holdAfter(messages: number): Promise<void>;
  /** Closes the held connections, and forwards everything again. */
  release(): void;
}

/** Starts the proxy. Clients wait for each answer, so data that arrives together counts as one message. */
export async function holdConnectionsTo(host: string, port: number): Promise<HeldConnection> {
  let left = Number.POSITIVE_INFINITY;
  let held: () => void = () => {};
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(port, host);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    target.pipe(client);
    client.on("data", (data) => {
      if (left > 0) {
        left -= 1;
        target.write(data);
      } else held();
    });
  });
  const cut = () => {
    for (const one of sockets) one.destroy();
  };
  return {
    port: await listen(server),
    holdAfter: (messages) => {
      left = messages;
      const { promise, resolve } = Promise.withResolvers<void>();
      held = resolve;
      return promise;
    },
    release: () => {
      cut();
      left = Number.POSITIVE_INFINITY;
    },
    [Symbol.dispose]: () => {
      cut();
      server.close();
    },
  };
}
