import { connect, createServer, type Socket } from "node:net";
import { listen } from "../listen.ts";

/**
 * A proxy before PostgreSQL that counts what its clients send, message by message (frontend/backend protocol 3: a
 * letter, then the length), and asks `pass` about each before it is passed on.
 */
export async function countFrames(
  url: string,
  pass: (frame: number) => "pass" | "stop",
): Promise<{ url: string; close(): Promise<void> }> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    const database = connect(Number(target.port), target.hostname);
    for (const socket of [client, database]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    database.pipe(client);
    client.on("close", () => database.destroy());
    let started = false;
    let stopped = false;
    let pending = Buffer.alloc(0);
    client.on("data", (data: Buffer) => {
      pending = Buffer.concat([pending, data]);
      while (!stopped) {
        // The first message has no letter.
        const head = started ? 1 : 0;
        if (pending.length < head + 4) return;
        const size = head + pending.readUInt32BE(head);
        if (pending.length < size) return;
        started = true;
        count += 1;
        stopped = pass(count) === "stop";
        if (!stopped) database.write(pending.subarray(0, size));
        pending = pending.subarray(size);
      }
    });
  });
  const through = new URL(url);
  through.hostname = "127.0.0.1";
  through.port = String(await listen(server));
  return {
    url: through.href,
    close: () =>
      new Promise((settle) => {
        server.close(() => settle());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
