import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { appFolder, startOnDescriptor, startServing } from "../../../tests/support/http/serving.ts";
import { until } from "../../../tests/support/process/until.ts";

// Each mostly waits for a time limit of a separate server, so they run concurrently.

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());

interface Client {
  closed: boolean;
  received: number;
  socket: Socket;
}

/** A client that sends `head`, then repeats `more`, whatever the answer. */
function slowClient(port: number, head: string, more: string, reads = true): Client {
  // It never closes the connection, even if the server has.
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const client = { closed: false, received: 0, socket };
  const timer = setInterval(() => socket.write(more), 1000);
  const over = () => {
    client.closed = true;
    clearInterval(timer);
  };
  socket.write(head);
  socket.on("end", over).on("error", over).on("close", over);
  if (reads) socket.on("data", (chunk) => (client.received += chunk.length));
  return client;
}

const heads = [
  // Headers that trickle, bodies that trickle, chunks that trickle, and nothing at all.
  ["GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n"],
  ["GET / HTTP/1.1\r\nHost: a\r\nX: ", "y"],
  ["POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", "y"],
  ["POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\ny\r\n"],
  ["", ""],
] as const;

const large = "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

describe("slow clients", () => {
  test.concurrent(
    "500 of them at once: everybody else is answered all the while, and they are cut",
    async () => {
      await using server = await startServing(folder.path, ["--timeout-keep-alive", "5"]);
      const clients = Array.from({ length: 500 }, (_, at) => {
        const [head, more] = heads[at % heads.length]!;
        return slowClient(server.port, head, more);
      });
      let answered = 0;
      await until(
        "all to be cut",
        async () => {
          const { status } = await server.fetch("/", { headers: { connection: "close" } });
          expect(status).toBe(200);
          answered += 1;
          return clients.every(({ closed }) => closed);
        },
        60,
      );
      expect(answered).toBeGreaterThan(100);
      for (const { socket } of clients) socket.destroy();
    },
    90_000,
  );

  test.concurrent(
    "by a descriptor of somebody else's they are cut, too, and nothing is kept for them",
    async () => {
      await using server = await startOnDescriptor(folder.path, ["--fd", "3", "--timeout-keep-alive", "5"]);
      const before = socketsOf(server.pid);
      const clients = heads.map(([head, more]) => slowClient(server.port, head, more));
      await until("all to be there", () => socketsOf(server.pid) >= before + 2 * clients.length);
      await until("all to be cut", () => clients.every(({ closed }) => closed), 60);
      // Their side is still open.
      await until("nothing of them to be left", () => socketsOf(server.pid) <= before, 60);
      for (const { socket } of clients) socket.destroy();
    },
    150_000,
  );

  test.concurrent(
    "a client that never reads the response is cut off",
    async () => {
      await using server = await startServing(folder.path, ["--timeout-keep-alive", "2"]);
      const before = socketsOf(server.pid);
      const { socket } = slowClient(server.port, large, "", false);
      socket.pause();
      await until("it to be there", () => socketsOf(server.pid) > before);
      await until("the server to let go of it", () => socketsOf(server.pid) <= before, 60);
      socket.destroy();
    },
    90_000,
  );

  test.concurrent(
    "a client that reads slowly gets the whole response",
    async () => {
      await using server = await startServing(folder.path, ["--timeout-keep-alive", "2"]);
      const { socket } = slowClient(server.port, large, "", false);
      let received = 0;
      socket.on("data", (chunk) => {
        received += chunk.length;
        socket.pause();
        setTimeout(() => socket.resume(), 50);
      });
      await until("the whole answer", () => received > 32 * 1024 * 1024, 60);
      socket.destroy();
    },
    90_000,
  );
});

test.concurrent(
  "--timeout-keep-alive: a connection that is used is not cut between two requests",
  async () => {
    await using server = await startServing(folder.path, ["--timeout-keep-alive", "2"]);
    const client = slowClient(server.port, "", "GET /read HTTP/1.1\r\nHost: a\r\n\r\n");
    const answer = 100;
    await until("eight answers, or the end", () => client.closed || client.received > 8 * answer);
    expect(client.closed).toBe(false);
    client.socket.destroy();
  },
);

/** The number of sockets of a process. */
function socketsOf(pid: number): number {
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      // Closed meanwhile.
      return "";
    }
  });
  return links.filter((link) => link.startsWith("socket:")).length;
}
